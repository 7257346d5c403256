package turn

// A Stopper ends an answer at the first of some stop sequences, wherever the borders
// of its deltas lie. The first is the one that is complete first; of several that end
// at the same byte it is the longest. It holds text back as long as that may be the
// start of a sequence. It is for one answer and one goroutine.
type Stopper struct {
	patterns []pattern
	held     string // the longest end of the text so far that starts a sequence
}

// pattern is one sequence and how far into it the text so far reaches.
type pattern struct {
	sequence string
	matched  int
	// border[n] is the length of the longest proper start of the sequence that its
	// first n bytes end in: where to go on if the next byte does not fit.
	border []int
}

// NewStopper makes the Stopper of an answer. Empty sequences match nothing.
func NewStopper(sequences []string) *Stopper {
	s := &Stopper{}
	for _, sequence := range sequences {
		if sequence != "" {
			s.patterns = append(s.patterns, pattern{sequence: sequence, border: borders(sequence)})
		}
	}
	return s
}

// Push takes the next text of the answer and returns what of it and of the text held
// back may be sent. If done, the answer ends with that text, before the sequence
// matched, and Push and Flush are not called again.
func (s *Stopper) Push(delta string) (text string, matched string, done bool) {
	all := s.held + delta
	for i := len(s.held); i < len(all); i++ {
		if sequence := s.step(all[i]); sequence != "" {
			return all[:i+1-len(sequence)], sequence, true
		}
	}
	keep := 0
	for i := range s.patterns {
		keep = max(keep, s.patterns[i].matched)
	}
	s.held = all[len(all)-keep:]
	return all[:len(all)-keep], "", false
}

// Flush returns the text held back, at the end of an answer without a match.
func (s *Stopper) Flush() string {
	held := s.held
	s.held = ""
	return held
}

// step takes one byte and returns the longest sequence that it completes.
func (s *Stopper) step(c byte) (longest string) {
	for i := range s.patterns {
		p := &s.patterns[i]
		if p.step(c) && len(p.sequence) > len(longest) {
			longest = p.sequence
		}
	}
	return longest
}

// step takes one byte and reports whether it completes the sequence.
func (p *pattern) step(c byte) bool {
	for p.matched > 0 && p.sequence[p.matched] != c {
		p.matched = p.border[p.matched]
	}
	if p.sequence[p.matched] == c {
		p.matched++
	}
	return p.matched == len(p.sequence)
}

// borders computes a pattern's border.
func borders(sequence string) []int {
	border := make([]int, len(sequence))
	for n := 2; n < len(sequence); n++ {
		k := border[n-1]
		for k > 0 && sequence[k] != sequence[n-1] {
			k = border[k]
		}
		if sequence[k] == sequence[n-1] {
			k++
		}
		border[n] = k
	}
	return border
}
