package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// checkHost refuses a request that calls the server by a foreign name: a web page whose
// name was made to point to this machine (DNS rebinding) is of the server's own origin in
// the eyes of its browser, and could read every answer. It cannot do that to an address,
// nor to localhost.
func (s *Server) checkHost(host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if strings.EqualFold(host, "localhost") {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && (addr.IsLoopback() || !s.options.Loopback) {
		return nil
	}
	for _, name := range s.options.HostNames {
		if name == "*" || strings.EqualFold(host, name) {
			return nil
		}
	}
	return &fault{
		status:  http.StatusForbidden,
		code:    "foreign_host",
		message: "the Host header names a host that this server does not answer for: call it by its address, or name the host with --allow-host",
	}
}

// checkPage refuses what only a browser sends for a page of another origin, unless that is
// one of Options.Origins. Such a page may not read the answers, but its requests would cost
// turns all the same. It reports whether the request is a browser's question whether the
// page may send another one (a preflight), whose answer's headers it has set: methods are
// those of the route.
func (s *Server) checkPage(x *exchange, methods []string) (preflight bool, err error) {
	h := x.w.Header()
	if len(s.options.Origins) > 0 {
		h.Add("Vary", "Origin")
	}
	origins := x.r.Header.Values("Origin")
	allowed := false
	for _, origin := range origins {
		allowed = len(origins) == 1 && slices.Contains(s.options.Origins, origin)
		if u, err := url.Parse(origin); !allowed && (err != nil || u.Host == "" || !strings.EqualFold(u.Host, x.r.Host)) {
			return false, foreignOrigin()
		}
	}
	if !allowed {
		if len(origins) == 0 && fromElsewhere(x.r) {
			return false, foreignOrigin()
		}
		return false, nil
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", exposed)
	asked := x.r.Header.Get("Access-Control-Request-Method")
	if x.r.Method != http.MethodOptions || asked == "" {
		return false, nil
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers", strings.Join(allowedHeaders(x.r.Header.Values("Access-Control-Request-Headers")), ", "))
	h.Set("Access-Control-Max-Age", "600")
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	return true, nil
}

// fromElsewhere reports whether the browser says that another site has made it send the
// request, and sends no Origin: an image, a script, a frame. A link to follow is none of
// these.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" {
		return false
	}
	followed := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !followed || r.Method != http.MethodGet
}

func foreignOrigin() *fault {
	return &fault{
		status:  http.StatusForbidden,
		code:    "foreign_origin",
		message: "web pages of another origin may not use this server, unless it is started with --cors-origin for theirs",
	}
}

// exposed are the headers of answers that pages may read.
const exposed = "X-Request-Id, Request-Id, Retry-After, Ocp-Ignored-Params, Ocp-Estimate, X-Should-Retry, " +
	"X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, " +
	"X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens, " +
	"Anthropic-Ratelimit-Requests-Limit, Anthropic-Ratelimit-Requests-Remaining, Anthropic-Ratelimit-Requests-Reset, " +
	"Anthropic-Ratelimit-Tokens-Limit, Anthropic-Ratelimit-Tokens-Remaining, Anthropic-Ratelimit-Tokens-Reset"

// pageHeaders are those that clients of the APIs send.
var pageHeaders = []string{
	"accept", "authorization", "content-type", "x-api-key",
	"anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access",
	"openai-organization", "openai-project", "openai-beta",
	"ocp-conversation",
}

// allowedHeaders are those of the headers asked for that a page may send. The official SDKs
// add some of their own, all with one prefix.
func allowedHeaders(asked []string) []string {
	allowed := []string{}
	for name := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if slices.Contains(pageHeaders, name) || strings.HasPrefix(name, "x-stainless-") {
			allowed = append(allowed, name)
		}
	}
	return allowed
}
