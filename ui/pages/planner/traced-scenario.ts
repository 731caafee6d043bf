/** Makes a scenario from the fleet of this cluster and a trace. Pure. */

/** The parts of GET /snapshot that the scenario takes over (docs/scenario-format.md). */
export interface SnapshotParts {
  readonly description?: string
  readonly config?: object
  readonly fleet?: readonly object[]
  readonly workload?: readonly object[]
}

/** null: from the trace, so every seed gives the same run. Otherwise GPU activity is drawn for each seed. */
export type Activity = 'serving' | 'training' | null

export function tracedScenario({ config, fleet }: SnapshotParts, trace: string, activity: Activity): object {
  return {
    scenario: `trace-${trace}`,
    description: `The trace ${trace} on the nodes that are up, with the configuration of the live cluster.`,
    version: 1,
    config: config ?? {},
    fleet: fleet ?? [],
    workload: [{ trace: `traces/${trace}.trace.jsonl`, ...(activity === null ? {} : { activity }) }],
  }
}

/** Converts a file name to a trace name: `Jobs 2026.txt` → `jobs-2026`. */
export function traceName(file: string): string {
  const name = file
    .toLowerCase()
    .replace(/(\.trace)?(\.[a-z0-9]+)?(\.gz)?$/, '')
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, 64)
  return name === '' ? 'trace' : name
}
