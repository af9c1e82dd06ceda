package logging

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"
)

// longestLine is how much of what is written without an end of line is logged as one.
const longestLine = 64 << 10

// CaptureStderr routes what libraries write to os.Stderr into the logger for the rest of the process, line by line, as
// Capture does with their logs. What the runtime says of its own end still goes to the standard error of the process.
func CaptureStderr(to *zap.Logger) error {
	from, stderr, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for what libraries write: %w", err)
	}
	os.Stderr = stderr
	go logLines(from, lines{boundLines(to).Named("stderr")})
	return nil
}

// logLines logs until the other end is closed.
func logLines(from *os.File, to lines) {
	reader := bufio.NewReaderSize(from, longestLine)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			_, _ = to.Write(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
