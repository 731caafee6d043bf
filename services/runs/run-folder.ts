/**
 * `--out DIR`: the files of one run. All except timing.json are byte-equal for the same scenario, seed and
 * version.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Instant } from '../../protocol/units.ts'
import { csvLine } from '../../simulator/results/csv.ts'
import { SeriesSampler } from '../../simulator/run/series-sampler.ts'
import { finishedTaskLine, openTaskLine, TASK_COLUMNS } from '../../simulator/report/task-rows.ts'
import type { Run, RunOptions } from '../../simulator/run/run.ts'
import { makeFolder, OutputFile } from '../output-file.ts'
import type { Timing } from './stopwatch.ts'

export interface RunFolder {
  /** Options of the run that fill the files. */
  readonly options: Pick<RunOptions, 'journalSink' | 'onOutcome' | 'sampler'>
  /**
   * Writes the final values; then the files get their names, result.json last: if it exists, the others
   * belong to it.
   */
  finish(run: Run, timing: Timing): void
  /** The run failed: existing files stay. */
  abandon(): void
}

/**
 * Throws UsageError when the folder is not writable; so do the methods of the result.
 * @param option the option that named the folder
 */
export function openRunFolder(
  folder: string,
  startedAt: Instant,
  {
    hasJournal = true,
    option = `--out ${folder}`,
  }: { readonly hasJournal?: boolean; readonly option?: string } = {},
): RunFolder {
  makeFolder(option, folder)
  const files: OutputFile[] = []
  const abandon = (): void => files.forEach((file) => file.discard())
  const open = (name: string): OutputFile => {
    try {
      const file = new OutputFile(option, join(folder, name))
      files.push(file)
      return file
    } catch (error) {
      abandon()
      throw error
    }
  }
  const journal = hasJournal ? open('journal.jsonl') : null
  const tasks = open('tasks.csv')
  const sampler = new SeriesSampler()
  tasks.write(csvLine(TASK_COLUMNS))
  return {
    options: {
      ...(journal === null ? {} : { journalSink: journal }),
      sampler,
      onOutcome: (outcome) => tasks.write(finishedTaskLine(outcome, startedAt)),
    },
    finish(run, timing) {
      for (const task of run.open) tasks.write(openTaskLine(task, startedAt))
      open('series.csv').write(sampler.csv())
      open('timing.json').write(jsonText(timing))
      open('result.json').write(jsonText(run.result))
      for (const file of files) file.close()
      // A result of an earlier run does not belong to the new files.
      rmSync(join(folder, 'result.json'), { force: true })
      for (const file of files) file.publish()
    },
    abandon,
  }
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
