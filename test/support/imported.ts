/** Imported foreign files for tests: all tasks at once, with only documented counts. */
import { expect } from 'vitest'
import { importTrace } from '../../simulator/trace/import/import-trace.ts'
import { COMMON_REASONS, type Importer, type ImportOptions } from '../../simulator/trace/import/importer.ts'
import { importerOf } from '../../simulator/trace/formats/importers.ts'
import type { TraceHeader, TraceTask } from '../../simulator/trace/trace-format.ts'
import { write } from './headroom-command.ts'

export interface Imported {
  readonly header: TraceHeader
  readonly tasks: readonly TraceTask[]
}

export async function importFile(
  format: string,
  file: string,
  options: ImportOptions = {},
): Promise<Imported> {
  const importer = importerOf(format)
  const { header, taskCount, tasks, close } = await importTrace(importer, file, options)
  const all = await collect(tasks)
  await close()
  expect(all).toHaveLength(taskCount)
  expectDeclared(importer, header)
  return { header, tasks: all }
}

/** A file with these lines, or this text. */
export function importText(
  folder: string,
  format: string,
  content: readonly string[] | string,
  options: ImportOptions = {},
): Promise<Imported> {
  const text = typeof content === 'string' ? content : content.join('\n')
  return importFile(format, write(folder, `${format}.txt`, text), options)
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Every counted reason is in the documentation of the format. */
function expectDeclared({ columns, dropped, ignored, adjusted }: Importer, header: TraceHeader): void {
  const ofColumns = columns.flatMap(({ name }) =>
    name.split(', ').flatMap((column) => [`no_${column}`, `bad_${column}`]),
  )
  const reasons = new Set([...Object.keys(COMMON_REASONS), ...Object.keys(dropped), ...ofColumns])
  expect([...reasons]).toEqual(expect.arrayContaining(Object.keys(header.dropped)))
  expect(Object.keys(ignored)).toEqual(expect.arrayContaining(Object.keys(header.importer?.ignored ?? {})))
  expect(Object.keys(adjusted)).toEqual(expect.arrayContaining(Object.keys(header.importer?.adjusted ?? {})))
}

/** Every row became a task or is counted as dropped. */
export function expectEveryRow({ header, tasks }: Imported): void {
  expect(tasks.length + Object.values(header.dropped).reduce((sum, count) => sum + count, 0)).toBe(
    header.rows,
  )
}
