package statuspage

import (
	"ocp/internal/server"
	"ocp/internal/turn"
)

// explanation is what an outcome means, and what can be done about it.
type explanation struct{ Meaning, Remedy string }

// explanations are of every outcome but ok.
var explanations = map[string]explanation{
	string(turn.Authentication): {"The upstream refused the credentials, or there are none.", "Log in with the Claude Code CLI, or give ocp a key or token in its environment. ocp doctor says what it has found."},
	string(turn.Permission):     {"The credentials are good, and may not be used for this.", "Ask for a model that the account has, or see the account's settings."},
	string(turn.RateLimited):    {"The account is at a limit of the upstream's.", "Wait; clients are told for how long where it is known. It is the account's own limit."},
	string(turn.Overloaded):     {"The upstream is overloaded.", "Clients should try again later, as they are told."},
	string(turn.Upstream):       {"The upstream or the connection to it failed, or the model's answer broke off.", "If it stays, see whether this machine reaches the upstream, by its proxy if there is one."},
	string(turn.InvalidRequest): {"The upstream refused the client's request.", "It is the client's to change; its error has the upstream's own words."},
	string(turn.ContextLength):  {"The conversation is too long for the model.", "The client has to shorten it, or to ask for a model with a larger context."},
	string(turn.TooLarge):       {"The request is too large for the upstream.", "The client has to send less, such as smaller images or documents."},
	string(turn.ModelNotFound):  {"There is no such model, or not for this account.", "The client has to ask for another one: GET /v1/models lists some."},
	string(turn.Timeout):        {"One of ocp's own limits was reached.", "The message names the limit: --turn-timeout, --first-byte-timeout or --idle-timeout; or there were too few slots (--concurrency)."},
	string(turn.SessionFailed):  {"The CLI did not start, or ended before its answer was whole.", "ocp doctor with the same flags says what is wrong; --log-level debug has more. A lack of memory ends processes too."},
	string(turn.Diverged):       {"What was streamed was not what the session's transcript says, so the answer was broken off.", "The client got an error and not a wrong end. Run ocp probe: this release of the CLI may do something otherwise than the tested ones."},
	string(turn.Unverified):     {"The session's transcript did not show the answer in time.", "The machine may be overloaded, or its disk full or slow. Otherwise run ocp probe."},
	string(turn.Shutdown):       {"ocp was being stopped.", "Nothing: clients should try again once it is back."},
	string(turn.Canceled):       {"The client went before its answer was whole.", "Nothing, if it was meant to. Clients with a short timeout go early."},
	"refused":                   {"All slots were taken and the queue was full.", "Clients should try again later. More slots (--concurrency) take about 250 MB each; --queue lets more wait."},
	server.Limited:              {"A client was beyond a limit of its key.", "It is told until when it has to wait. ocp keys shows and sets the limits."},
	"bad_request":               {"The request was not one that can be answered.", "It is the client's to change; its error names the field."},
	"internal":                  {"A fault of ocp's own.", "The log has it under the request's id. Please report it."},
}
