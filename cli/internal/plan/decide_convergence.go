package plan

// UnitState is what systemd has of a unit.
type UnitState struct {
	// Active tells that its process runs, Enabled that it starts with the machine.
	Active, Enabled bool
	// Stale tells that systemd has not read the unit's file since it was written.
	Stale bool
	// Revision is what the running process was started from; empty without one.
	Revision string
	// Outdated tells that the process runs and its program's file is another one by now.
	Outdated bool
}

// UnitChanges are what makes the files of units, and what systemd knows of them, as they are to be.
type UnitChanges struct {
	Write  []Unit
	Reload bool
	Enable []string
}

// DecideUnitChanges compares the units with the files and with what systemd has. Files maps names to contents.
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

// DecideRestarts lists the units whose process does not run, or was started from anything else than what there is now:
// whatever a run of keel that was cut off has done before.
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
