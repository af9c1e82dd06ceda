package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// limits returns spec.replicas with the least and the most that the strategy allows, worked out apart from the
// controller.
func limits(d *appsv1.Deployment) (replicas, least, most int32) {
	replicas = *d.Spec.Replicas
	rolling := d.Spec.Strategy.RollingUpdate
	surge, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(replicas), true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(replicas), false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas, max(0, replicas-int32(unavailable)), replicas + int32(surge)
}

func anyBound(random *rand.Rand) intstr.IntOrString {
	if random.IntN(2) == 0 {
		return intstr.FromInt32(random.Int32N(4))
	}
	return intstr.FromString(fmt.Sprintf("%d%%", random.IntN(101)))
}

// expectDone fails unless the Deployment is as it was asked to be, and says so.
func expectDone(c *cluster) {
	c.t.Helper()
	r := c.last()
	replicas, _, _ := limits(r.deployment)
	for _, set := range r.sets {
		want := int32(0)
		if image(set) == r.deployment.Spec.Template.Spec.Containers[0].Image {
			want = replicas
		}
		if *set.Spec.Replicas != want {
			c.fail("%s has size %d, want %d", image(set), *set.Spec.Replicas, want)
		}
	}
	status := r.deployment.Status
	if status.Replicas != replicas || status.UpdatedReplicas != replicas || status.AvailableReplicas != replicas ||
		status.UnavailableReplicas != 0 || status.ObservedGeneration != r.deployment.Generation {
		c.fail("status %+v with %d replicas", status, replicas)
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason != "NewReplicaSetAvailable" {
			c.fail("condition %+v", condition)
		}
	}
	if len(r.sets) > 3 { // DEP-142: the limit is 2
		c.fail("%d ReplicaSets are left", len(r.sets))
	}
}

// finish lets nothing fail any more, and asks for one good template.
func finish(c *cluster, image string) {
	c.faulty, c.chaos = false, false
	c.edit("the end", func(d *appsv1.Deployment) {
		d.Spec.Paused = false
		d.Spec.Template = template(image)
	})
	c.settle()
	expectDone(c)
	if c.passOfDeployment() {
		c.fail("at rest a pass changes something")
	}
}

// DEP-050, DEP-067, DEP-068, DEP-074, DEP-075, DEP-077: whatever the order of events, however late the controllers
// see them, whichever of their writes fail and whenever they end: through updates, rollovers and ways back they
// never ask for more than the most, and never end a Pod that serves when fewer than the least would be left. In the
// end all is as asked for.
func TestBoundsHoldAtEveryStep(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, seed, random.Int32N(12), anyBound(random), anyBound(random))
			c.settle()
			expectDone(c)
			_, least, most := limits(c.last().deployment)
			c.faulty, c.late = true, seed%2 == 0
			for range 300 {
				if random.IntN(40) == 0 {
					name := []string{"web:1", "web:2", "web:3", "web:bad"}[random.IntN(4)]
					c.edit(name, func(d *appsv1.Deployment) { d.Spec.Template = template(name) })
				}
				before := c.last().available()
				c.step()
				if wanted := c.last().wanted(); wanted > most {
					c.fail("%d replicas are asked for, at most %d are allowed", wanted, most)
				}
				if active := c.last().active(); active > most {
					c.fail("%d Pods exist, at most %d are allowed", active, most)
				}
				if now := c.last().available(); now < before && now < least {
					c.fail("%d Pods served, %d still do; at least %d have to", before, now, least)
				}
			}
			finish(c, "web:4")
		})
	}
}

// DEP-132, DEP-139: whatever users do, whichever Pods and writes fail, and however old the picture is that a
// controller begins with: when all of that has stopped the Deployment becomes what its spec says.
func TestItAlwaysEndsWell(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			c := newCluster(t, seed, random.Int32N(8), anyBound(random), anyBound(random))
			c.faulty, c.stale, c.late, c.chaos = true, seed%2 == 0, seed%4 != 3, true
			for range 400 {
				if random.IntN(15) == 0 {
					meddle(c, random)
				}
				wanted := c.last().wanted()
				c.step()
				// Users may have lowered the bound; it must not be exceeded further.
				d, now := c.last().deployment, c.last().wanted()
				if _, _, most := limits(d); !c.stale && !c.late && now > max(wanted, most) && !d.Spec.Paused {
					c.fail("%d replicas are asked for after %d, at most %d are allowed", now, wanted, most)
				}
			}
			finish(c, "web:1")
		})
	}
}

// meddle does something that a user may do at any time.
func meddle(c *cluster, random *rand.Rand) {
	switch random.IntN(6) {
	case 0:
		n := random.Int32N(12)
		c.edit(fmt.Sprint("scale to ", n), func(d *appsv1.Deployment) { d.Spec.Replicas = &n })
	case 1:
		c.edit("pause or resume", func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
	case 2:
		surge, unavailable := anyBound(random), anyBound(random)
		c.edit("other bounds", func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge,
				MaxUnavailable: &unavailable}
		})
	case 3:
		seconds := random.Int32N(5)
		c.edit("another minReadySeconds", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = seconds })
	default:
		name := []string{"web:1", "web:2", "web:3", "web:bad"}[random.IntN(4)]
		c.edit(name, func(d *appsv1.Deployment) { d.Spec.Template = template(name) })
	}
}

// DEP-072: with Recreate Pods of two templates never exist at the same time, whatever fails and however late the
// controllers see it.
func TestRecreateNeverMixes(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			c := newCluster(t, seed, 1+random.Int32N(5), intstr.FromInt32(1), intstr.FromInt32(1))
			recreate := func(d *appsv1.Deployment) {
				d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			}
			c.edit("recreate", recreate)
			c.faulty, c.late = true, true
			for range 300 {
				if random.IntN(50) == 0 {
					name := fmt.Sprintf("web:%d", random.IntN(4))
					c.edit(name, func(d *appsv1.Deployment) { d.Spec.Template = template(name) })
				}
				c.step()
				images := map[string]bool{}
				for _, pod := range c.last().pods {
					images[pod.Spec.Containers[0].Image] = true
				}
				if len(images) > 1 {
					c.fail("Pods of %v exist at the same time", images)
				}
			}
		})
	}
}

// DEP-129: a rollout that is stuck is reported soon after its deadline, without anything else happening.
func TestStuckRolloutIsReported(t *testing.T) {
	c := newCluster(t, 1, 3, intstr.FromString("25%"), intstr.FromString("25%"))
	c.settle()
	c.edit("web:bad", func(d *appsv1.Deployment) { d.Spec.Template = template("web:bad") })
	c.settle()
	if got := c.last().active(); got != 4 || c.last().available() != 3 { // DEP-058
		t.Fatalf("%d Pods, %d of them available; want 4 and 3", got, c.last().available())
	}
	c.now = c.now.Add(700 * time.Second)
	c.settle()
	for _, condition := range c.last().deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason != "ProgressDeadlineExceeded" {
			t.Errorf("condition %+v", condition)
		}
	}
}

// Pods that their nodes refuse are not made again and again; when the nodes take Pods, all come.
func TestRefusedPodsAreFew(t *testing.T) {
	c := newCluster(t, 1, 20, intstr.FromInt32(0), intstr.FromString("100%"))
	c.refusing = true
	for range 120 {
		c.round()
	}
	if made := len(c.last().pods); made < 20 || made > 60 {
		t.Errorf("%d Pods in two minutes with 20 missing", made)
	}
	c.refusing = false
	c.settle()
	expectDone(c)
}
