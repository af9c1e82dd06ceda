package owners

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Whatever owns whatever, also in circles or itself, and in whatever order changes are seen: what is deleted is gone
// in the end, and who waits for its dependents goes after all of them but those that wait for it in turn. DEP-168
// DEP-169
func TestEveryDeletionEnds(t *testing.T) {
	for seed := range uint64(5000) {
		w := newWorld(t, seed)
		for range 1 + w.random.IntN(3) {
			uid := types.UID(fmt.Sprint(w.random.IntN(6)))
			w.ask(uid)
			if w.random.IntN(2) == 0 {
				w.settle()
			}
		}
		w.settle()
		for uid, o := range w.server {
			if o.Deleting {
				w.fail("seed %d: %s stays, finalizers %v", seed, uid, o.Finalizers)
			}
		}
	}
}

// Whatever a user makes and deletes meanwhile, also below owners that are gone, and however often the watches are
// interrupted or the collector restarts: nothing goes whose owner lives, and nothing stays whose owners are all
// gone.
// DEP-031 DEP-167
func TestNothingIsDeletedUnderALivingOwnerAndNothingStaysWithoutOne(t *testing.T) {
	for seed := range uint64(5000) {
		w := newWorld(t, seed)
		for i := range 1 + w.random.IntN(8) {
			switch w.random.IntN(6) {
			case 0:
				w.interrupt()
			case 1:
				w.restart()
			case 2:
				w.settle()
			case 3:
				o := object(types.UID(fmt.Sprint("new", i)))
				for range 1 + w.random.IntN(2) {
					owner := fmt.Sprint(w.random.IntN(6))
					if w.random.IntN(2) == 0 {
						owner = fmt.Sprint("new", w.random.IntN(i+1))
					}
					o.Owners = append(o.Owners, ref(types.UID(owner), false))
				}
				w.log = append(w.log, fmt.Sprintf("%s is made, owned by %s", o.UID, names(o)))
				w.write(o)
			default:
				w.ask(types.UID(fmt.Sprint(w.random.IntN(6))))
			}
			for range w.random.IntN(4) {
				w.step()
			}
		}
		w.settle()
		for uid, o := range w.server {
			if len(o.Owners) > 0 && !w.ownerLives(o) {
				w.fail("seed %d: %s stays without an owner: %s", seed, uid, names(o))
			}
		}
	}
}
