/** Which columns of a CSV file are which fields of a task. Pure. */

/** docs/trace-format.md, format csv. */
export const TASK_FIELDS = [
  { field: 'at', name: 'Submitted at', unit: 's, or a date', isRequired: true },
  { field: 'duration', name: 'Duration', unit: 's', isRequired: false },
  { field: 'end', name: 'Ended at', unit: 's, or a date', isRequired: false },
  { field: 'vram_mib', name: 'VRAM per GPU', unit: 'MiB', isRequired: false },
  { field: 'gpus', name: 'GPUs', unit: 'number', isRequired: false },
  { field: 'priority', name: 'Priority', unit: 'P0 to P4', isRequired: false },
  { field: 'owner', name: 'Owner', unit: 'name', isRequired: false },
  { field: 'id', name: 'ID', unit: 'text', isRequired: false },
] as const
export type TaskField = (typeof TASK_FIELDS)[number]['field']

/** The column of each field, from 0. */
export type Mapping = Readonly<Partial<Record<TaskField, number>>>

const SYNONYMS: Readonly<Record<TaskField, readonly string[]>> = {
  at: ['at', 'submit', 'submitted', 'submittime', 'submittedtime', 'submittedat', 'arrival', 'arrivaltime'],
  duration: ['duration', 'runtime', 'elapsed', 'durationseconds', 'runtimeseconds', 'durations'],
  end: ['end', 'endtime', 'finished', 'finishtime', 'endedat', 'finishedat'],
  vram_mib: ['vrammib', 'vram', 'gpumemory', 'gpumem', 'memorymib', 'gpumemorymib'],
  gpus: ['gpus', 'numgpus', 'gpucount', 'ngpus', 'gpunum', 'numgpu', 'numberofgpus'],
  priority: ['priority', 'prio'],
  owner: ['owner', 'user', 'username', 'vc', 'project'],
  id: ['id', 'jobid', 'taskid', 'name', 'jobname'],
}

/** Cells of a line, with quotes as in RFC 4180. */
export function cellsOf(line: string): readonly string[] {
  const cells: string[] = []
  for (const match of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g))
    cells.push((match[1]?.replaceAll('""', '"') ?? match[2] ?? '').trim())
  return cells
}

/** Columns whose names are those of a field, or usual for it. */
export function guessedMapping(columns: readonly string[]): Mapping {
  const plain = columns.map((name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
  const pairs = TASK_FIELDS.flatMap(({ field }) => {
    const at = SYNONYMS[field].map((name) => plain.indexOf(name)).find((index) => index >= 0)
    return at === undefined ? [] : [[field, at] as const]
  })
  return Object.fromEntries(pairs)
}

/** Returns the missing column; null: none is missing. */
export function missingOf(mapping: Mapping): string | null {
  if (mapping.at === undefined) return 'Choose the column that contains the submission time.'
  if (mapping.duration === undefined && mapping.end === undefined)
    return 'Choose the column that contains the duration or the end time.'
  const used = Object.values(mapping)
  return new Set(used).size < used.length ? 'Choose each column only once.' : null
}

/** The first line with the names of the fields; columns that are not chosen get names of no field. */
export function mappedHeader(columns: readonly string[], mapping: Mapping): string {
  const fieldAt = new Map(Object.entries(mapping).map(([field, at]) => [at, field]))
  return columns.map((_name, at) => fieldAt.get(at) ?? `column_${at + 1}`).join(',')
}
