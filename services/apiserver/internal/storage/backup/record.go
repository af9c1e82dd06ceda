package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readRecord returns the record beside a snapshot; nil: there is none, as beside what etcdctl saved.
func readRecord(snapshot string) (*Record, error) {
	data, err := os.ReadFile(snapshot + recordSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s is no record of a snapshot: %w", snapshot+recordSuffix, err)
	}
	return r, nil
}

// Verify reads a snapshot whole and compares it with the record beside it, of which there may be none.
func Verify(path string) (Content, *Record, error) {
	content, err := Inspect(path)
	if err != nil {
		return content, nil, err
	}
	record, err := readRecord(path)
	if err != nil || record == nil {
		return content, nil, err
	}
	if record.Checksum != content.Checksum || record.Revision != content.Revision {
		return content, record, fmt.Errorf("%s is not what was taken: it holds %s, and its record says %s", path,
			content, record.Content)
	}
	return content, record, nil
}
