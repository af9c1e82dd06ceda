package class

import (
	"encoding/binary"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Which of a Pod's images a node has is a trait of the node. What the trait is worth changes with every node that gets
// or loses one of them, so it is worked out at each decision, once for all nodes that have the same of the images.

// imaged returns the traits of a node: those of its shape, and which images it has.
func (j *judge) imaged(s *columns.State, of traitsID, slot columns.Slot) traitsID {
	if len(j.images) == 0 {
		return of
	}
	j.key = binary.AppendUvarint(j.key[:0], uint64(of))
	for _, score := range j.images {
		j.key = binary.AppendUvarint(j.key, uint64(s.Images(slot, score.Judge.ImageNames())))
	}
	id, ok := j.imagedIDs[string(j.key)]
	if !ok {
		id = traitsID(len(j.traits))
		raw := slices.Clone(j.traits[of])
		for _, score := range j.images {
			raw = append(raw, int64(s.Images(slot, score.Judge.ImageNames())))
		}
		j.traits = append(j.traits, raw)
		j.imagedIDs[string(j.key)] = id
	}
	return id
}

// rateImages puts the score of its images in the place of the trait.
func (j *judge) rateImages(s *columns.State, score *rules.Score, at int, among []candidate) {
	names := score.Judge.ImageNames()
	j.known = j.known[:0]
	for _, name := range names {
		j.known = append(j.known, s.Image(name))
	}
	j.here = append(j.here[:0], j.known...)
	for i := range among {
		clear(j.here)
		for image := range columns.ImageSet(among[i].raw[at]).All {
			j.here[image] = j.known[image]
		}
		among[i].raw[at] = score.Judge.Images(j.here)
	}
}
