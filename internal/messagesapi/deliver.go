package messagesapi

import (
	"context"
	"net/http"
	"time"
)

// deliver sends an answer that has its defaults and is valid. The error says why it
// was not completed: errFaulted, the cause of ctx, or that of a failed write.
func deliver(ctx context.Context, w *wire, a Answer, stream bool) error {
	if err := pause(ctx, a.Pace.First); err != nil {
		return err
	}
	if a.Error != nil {
		return w.apiError(*a.Error)
	}
	w.sizes, w.coalesce = a.WriteSizes, a.Coalesce
	if stream {
		return deliverStream(ctx, w, a)
	}
	return deliverWhole(ctx, w, a)
}

func deliverStream(ctx context.Context, w *wire, a Answer) error {
	if err := a.Fault.happen(ctx, w, BeforeHeader()); err != nil {
		return err
	}
	if err := w.openStream(); err != nil {
		return err
	}
	if err := a.Fault.happen(ctx, w, BeforeStart()); err != nil {
		return err
	}
	for i, e := range a.events() {
		if i > 0 && a.Pace.Between > 0 {
			w.flush()
			if err := pause(ctx, a.Pace.Between); err != nil {
				return err
			}
		}
		if e.step && a.Gate != nil {
			w.flush()
			if err := a.Gate.pass(ctx); err != nil {
				return err
			}
		}
		if err := w.event(e); err != nil {
			return err
		}
		if err := a.Fault.happen(ctx, w, e.reaches); err != nil {
			return err
		}
	}
	return nil
}

// happen does the fault if this is its point; otherwise it returns nil.
func (f Fault) happen(ctx context.Context, w *wire, at Point) error {
	if f.kind == faultNone || f.at != at {
		return nil
	}
	switch f.kind {
	case faultFIN, faultRST:
		return w.cut(f.kind == faultRST)
	case faultHang:
		w.flush()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := w.openStream(); err != nil {
		return err
	}
	last := event{}
	switch f.kind {
	case faultEvent:
		last = event{name: "error", data: f.err.body("")}
	case faultMalformed:
		last = event{name: "content_block_delta", data: []byte(`{"type":"content_block_delta","index":0,"delta":{"ty`)}
	default:
		return errFaulted
	}
	if err := w.event(last); err != nil {
		return err
	}
	return errFaulted
}

// deliverWhole sends the answer as one JSON body.
func deliverWhole(ctx context.Context, w *wire, a Answer) error {
	if a.Gate != nil {
		if err := a.Gate.pass(ctx); err != nil {
			return err
		}
	}
	body := a.message()
	half := body[:len(body)/2]
	switch f := a.Fault; {
	case f.kind == faultNone:
		return w.body(http.StatusOK, "application/json", body, len(body))
	case f.kind == faultEvent:
		e := f.err
		if e.Status == 0 {
			e.Status = http.StatusInternalServerError
		}
		if err := w.apiError(e); err != nil {
			return err
		}
		return errFaulted
	case f.kind == faultEnd || f.kind == faultMalformed:
		if err := w.body(http.StatusOK, "application/json", half, len(half)); err != nil {
			return err
		}
		return errFaulted
	case f.at != BeforeHeader():
		if err := w.body(http.StatusOK, "application/json", half, len(body)); err != nil {
			return err
		}
	}
	return a.Fault.happen(ctx, w, a.Fault.at)
}

// pause waits for d or for the end of ctx, whose cause it returns.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
