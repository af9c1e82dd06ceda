package plan

// UnitState is the state of a unit in systemd.
type UnitState struct {
	// Active is set if its process runs, Enabled if it starts with the machine.
	Active, Enabled bool
	// Stale is set if systemd has not read the unit's file since it was written.
	Stale bool
	// Revision is the unit's revision from which the running process was started; empty without one.
	Revision string
	// Outdated is set if the process runs and its program's file has been replaced since.
	Outdated bool
}

// UnitChanges are the changes that bring unit files, and systemd's view of them, to the planned state.
type UnitChanges struct {
	Write  []Unit
	Reload bool
	Enable []string
}

// DecideUnitChanges compares the units with the files and with the state in systemd. Files maps names to contents.
func DecideUnitChanges(units []Unit, files map[string]string, states map[string]UnitState) UnitChanges {
	var changes UnitChanges
	for _, unit := range units {
		if files[unit.Name] != unit.Content {
			changes.Write = append(changes.Write, unit)
		}
		state := states[unit.Name]
		changes.Reload = changes.Reload || state.Stale
		if !state.Enabled {
			changes.Enable = append(changes.Enable, unit.Name)
		}
	}
	changes.Reload = changes.Reload || len(changes.Write) > 0
	return changes
}

// DecideRestarts lists the units whose process does not run or was started from another revision or program. It
// depends on the present state alone, so an interrupted earlier run of keel makes no difference.
func DecideRestarts(units []Unit, states map[string]UnitState) []string {
	var names []string
	for _, unit := range units {
		state := states[unit.Name]
		if !state.Active || state.Outdated || state.Revision != unit.Revision {
			names = append(names, unit.Name)
		}
	}
	return names
}
