package anthropic

import (
	"fmt"
	"net/http"
	"time"

	"ocp/internal/wire"
)

// AppendModels appends the list of models, as its only page.
func AppendModels(dst []byte, ids []string, created time.Time) []byte {
	dst = append(dst, `{"data":[`...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, id, created)
	}
	dst = append(dst, `],"has_more":false,"first_id":`...)
	if len(ids) == 0 {
		return append(dst, `null,"last_id":null}`...)
	}
	dst = wire.AppendString(dst, ids[0])
	dst = append(dst, `,"last_id":`...)
	dst = wire.AppendString(dst, ids[len(ids)-1])
	return append(dst, '}')
}

// AppendModel appends one model.
func AppendModel(dst []byte, id string, created time.Time) []byte {
	dst = append(dst, `{"type":"model","id":`...)
	dst = wire.AppendString(dst, id)
	dst = append(dst, `,"display_name":`...)
	dst = wire.AppendString(dst, id)
	dst = append(dst, `,"created_at":"`...)
	dst = created.UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `"}`...)
}

// NoSuchModel is the error for a model that is not in the list.
func NoSuchModel(id string) *Error {
	return &Error{
		Status:  http.StatusNotFound,
		Type:    TypeNotFound,
		Field:   "model",
		Message: fmt.Sprintf("%s does not exist: GET /v1/models lists those there are", wire.Quote(id)),
	}
}
