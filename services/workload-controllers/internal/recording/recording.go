// Package recording gives a controller events under the source that users of the API know, which is not the controller's
// own name.
package recording

import (
	"context"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/events"
)

// As builds a controller with a recorder of the given source. The recorder stops with the controller.
func As(s *controller.Setup, source string, build func(*events.Recorder) (controller.Runnable, error)) (controller.Runnable, error) {
	recorder, err := events.NewRecorder(s.Config, s.Scheme, source, "")
	if err != nil {
		return nil, err
	}
	built, err := build(recorder)
	if err != nil {
		recorder.Stop()
		return nil, err
	}
	return &recorded{Runnable: built, recorder: recorder}, nil
}

type recorded struct {
	controller.Runnable
	recorder *events.Recorder
}

// Start runs the controller until ctx ends.
func (r *recorded) Start(ctx context.Context) error {
	defer r.recorder.Stop()
	return r.Runnable.Start(ctx)
}
