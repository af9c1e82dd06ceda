package podworker

import (
	"maps"
	"time"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// keepAgain is how long to wait after a restart of all containers could not be recorded before deciding on it
// again.
const keepAgain = time.Second

// beginRestartAll records the restart of all containers that a plan begins, and returns when to pass again. Nothing
// is done about it before it is recorded: the next agent would do it twice, or forget it half-way.
func (w *worker) beginRestartAll(plan podstate.Plan) (wake time.Time) {
	if plan.RestartAll == nil {
		return plan.Wake
	}
	before, streaks := w.memory.RestartAll, w.memory.Streaks
	w.memory.RestartAll, w.memory.Streaks = plan.RestartAll, maps.Clone(streaks)
	maps.Copy(w.memory.Streaks, plan.Streaks)
	if !w.saveRecord() {
		w.memory.RestartAll, w.memory.Streaks = before, streaks
		return time.Now().Add(keepAgain)
	}
	w.config.Events.Record(w.pod, "", events.Normal(podstate.RestartingAllContainers, "%s", plan.RestartAll))
	w.wakeUp()
	return plan.Wake
}

// restartAllRecord returns what a later agent must know of the restart of all containers; nil if there was none.
func (w *worker) restartAllRecord() *checkpoint.RestartAll {
	if w.memory.RestartAll == nil {
		return nil
	}
	record := checkpoint.RestartAll(*w.memory.RestartAll)
	return &record
}

// restoreRestartAll takes over what an earlier agent recorded.
func (w *worker) restoreRestartAll(record *checkpoint.RestartAll) {
	if record != nil {
		r := podstate.RestartAll(*record)
		w.memory.RestartAll = &r
	}
}
