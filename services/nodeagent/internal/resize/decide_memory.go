package resize

import (
	"fmt"
	"strings"
)

// LoweredLimit is a memory limit that is to be lowered, with the memory in use under it.
type LoweredLimit struct {
	// Container is empty for the limit of the Pod as a whole.
	Container   string
	Limit, Used uint64
}

// MayLower returns why memory limits must not be lowered, nil if they may be: processes over the limit would be killed.
func MayLower(limits []LoweredLimit) error {
	var problems []string
	for _, l := range limits {
		if l.Used <= l.Limit {
			continue
		}
		whose := "pod"
		if l.Container != "" {
			whose = fmt.Sprintf("container %q", l.Container)
		}
		problems = append(problems, fmt.Sprintf("attempting to set %s memory limit (%d) below current usage (%d)",
			whose,
			l.Limit, l.Used))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("cannot decrease memory limits: [%s]", strings.Join(problems, ", "))
}
