/** A scenario made of the fleet that is here and of a trace. Pure. */

/** The parts of GET /snapshot that are taken over: a scenario (docs/scenario-format.md). */
export interface SnapshotParts {
  readonly description?: string
  readonly config?: object
  readonly fleet?: readonly object[]
  readonly workload?: readonly object[]
}

/**
 * null: as the trace has it, so every seed is the same run. Others draw anew, for each seed, when tasks work.
 */
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

/** The name of a file as a name of a trace: `Jobs 2026.txt` → `jobs-2026`. */
export function traceName(file: string): string {
  const name = file
    .toLowerCase()
    .replace(/(\.trace)?(\.[a-z0-9]+)?(\.gz)?$/, '')
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, 64)
  return name === '' ? 'trace' : name
}
