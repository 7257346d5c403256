package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"ocp/internal/openai"
)

// listModels answers GET /v1/models.
func (s *Server) listModels(x *exchange) error {
	return s.writeJSON(x, http.StatusOK, openai.AppendModels(nil, s.models(x)))
}

// model answers GET /v1/models/{id}.
func (s *Server) model(x *exchange) error {
	id := x.r.PathValue("id")
	if !slices.Contains(s.models(x), id) {
		return openai.NoSuchModel(id)
	}
	return s.writeJSON(x, http.StatusOK, openai.AppendModel(nil, id))
}

// healthz answers as long as the process serves at all; it says nothing of sessions.
func (s *Server) healthz(x *exchange) error {
	body, err := json.Marshal(struct {
		Status  string `json:"status"`
		Version string `json:"version"`
	}{"ok", s.options.Version})
	if err != nil {
		return fmt.Errorf("healthz: %w", err)
	}
	return s.writeJSON(x, http.StatusOK, body)
}

// cleanOnly serves next nothing but clean paths. A mux redirects the others, before any
// guard and in HTML: here they are not found.
func (s *Server) cleanOnly(next http.Handler) http.Handler {
	messages := s.route(anthropicDialect, s.notFound)
	others := byClient(s.route(openaiDialect, s.notFound), messages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.EscapedPath()
		clean := path.Clean("/" + given)
		switch {
		case given == clean || clean != "/" && given == clean+"/":
			next.ServeHTTP(w, r)
		case strings.HasPrefix(clean, "/v1/messages"):
			messages.ServeHTTP(w, r)
		default:
			others.ServeHTTP(w, r)
		}
	})
}

func (s *Server) notFound(x *exchange) error {
	return &fault{
		status:  http.StatusNotFound,
		code:    "unknown_url",
		message: "nothing is served at this path: use POST /v1/chat/completions, POST /v1/responses, POST /v1/messages or GET /v1/models",
	}
}
