package openai

import (
	"fmt"
	"net/http"
)

// modelsCreated is the first of January 2026: the API wants a date for each model, and
// the CLI tells none.
const modelsCreated = "1767225600"

// AppendModels appends the list of models.
func AppendModels(dst []byte, ids []string) []byte {
	dst = append(dst, `{"object":"list","data":[`...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, id)
	}
	return append(dst, `]}`...)
}

// AppendModel appends one model.
func AppendModel(dst []byte, id string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, id)
	return append(dst, `,"object":"model","created":`+modelsCreated+`,"owned_by":"anthropic"}`...)
}

// NoSuchModel is the error for a model that is not in the list.
func NoSuchModel(id string) *Error {
	return &Error{
		Status:  http.StatusNotFound,
		Type:    TypeInvalidRequest,
		Param:   "model",
		Code:    "model_not_found",
		Message: fmt.Sprintf("the model %s does not exist: GET /v1/models lists those there are", quote(id)),
	}
}
