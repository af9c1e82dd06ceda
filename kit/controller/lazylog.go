package controller

import (
	"slices"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
)

// newLogger returns the logger for controller-runtime, which gives each pass one with values of its own.
func newLogger(log *zap.Logger) logr.Logger {
	sink := zapr.NewLogger(log).GetSink()
	if deep, ok := sink.(logr.CallDepthLogSink); ok {
		sink = deep.WithCallDepth(1)
	}
	return logr.New(lazySink{LogSink: sink})
}

// lazySink keeps values until something is logged. Zap encodes them at once, which most passes never need.
type lazySink struct {
	logr.LogSink // which is initialised

	values []any
}

// Init implements logr.LogSink.
func (lazySink) Init(logr.RuntimeInfo) {}

// WithValues implements logr.LogSink.
func (s lazySink) WithValues(values ...any) logr.LogSink { return lazySink{s.LogSink, s.with(values)} }

// WithName implements logr.LogSink.
func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{s.LogSink.WithName(name), s.values}
}

// Info implements logr.LogSink.
func (s lazySink) Info(level int, message string, values ...any) {
	s.LogSink.Info(level, message, s.with(values)...)
}

// Error implements logr.LogSink.
func (s lazySink) Error(err error, message string, values ...any) {
	s.LogSink.Error(err, message, s.with(values)...)
}

func (s lazySink) with(values []any) []any { return append(slices.Clip(s.values), values...) }
