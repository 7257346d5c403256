package server

import (
	"fmt"
	"net/http"
)

// maxHeader bounds a request's line and headers, in bytes. What is far larger, net/http
// does not take in at all, and answers by itself.
const maxHeader = 64 << 10

func checkHeader(r *http.Request) error {
	size := len(r.Method) + len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	if size <= maxHeader {
		return nil
	}
	return &fault{
		status:  http.StatusRequestHeaderFieldsTooLarge,
		code:    "headers_too_large",
		message: fmt.Sprintf("the request's headers are larger than %d bytes", maxHeader),
	}
}
