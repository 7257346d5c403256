package pool

import "slices"

// fading is how much of a key's weight is left at each take. Two takes in a row outweigh
// all that were before: one request that is out of the ordinary does not cost the
// ordinary ones their session.
const fading = 0.7

// negligible is the weight below which a key is forgotten.
const negligible = 0.01

// demand is what recent takes have asked for, the last one first.
type demand[K comparable] []weighted[K]

type weighted[K comparable] struct {
	key    K
	weight float64
}

// note takes account of a take.
func (d *demand[K]) note(key K) {
	now := weighted[K]{key, 1}
	faded := slices.DeleteFunc(*d, func(w weighted[K]) bool {
		if w.key == key {
			now.weight += w.weight * fading
		}
		return w.key == key || w.weight*fading < negligible
	})
	for i := range faded {
		faded[i].weight *= fading
	}
	*d = slices.Insert(faded, 0, now)
}

// wanted shares n sessions out among the keys by their weights (by D'Hondt's method),
// the most wanted first. Of two that weigh the same, the later asked for goes first.
func (d demand[K]) wanted(n int) []K {
	if len(d) == 0 {
		return nil
	}
	shares := make([]int, len(d))
	keys := make([]K, n)
	for i := range keys {
		best := 0
		for j := range d {
			if d[j].weight/float64(shares[j]+1) > d[best].weight/float64(shares[best]+1) {
				best = j
			}
		}
		shares[best]++
		keys[i] = d[best].key
	}
	return keys
}
