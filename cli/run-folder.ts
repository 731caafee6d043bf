/** `--out DIR`: the files of one run. All but timing.json are byte-equal on every run of the same scenario, seed and version. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Instant } from '../protocol/units.ts'
import { csvLine } from '../simulator/report/csv.ts'
import { SeriesSampler } from '../simulator/report/series.ts'
import { finishedTaskLine, openTaskLine, TASK_COLUMNS } from '../simulator/report/task-rows.ts'
import type { Run, RunOptions } from '../simulator/run.ts'
import { UsageError } from './exit-codes.ts'
import { TextFile } from './text-file.ts'
import type { Timing } from './stopwatch.ts'

export interface RunFolder {
  /** What the run is told, so that it fills the files. */
  readonly options: Pick<RunOptions, 'journalSink' | 'onOutcome' | 'sampler'>
  /** Writes what is known at the end. result.json comes last: where it stands, the others are whole. */
  finish(run: Run, timing: Timing): void
}

/** Throws UsageError when the folder cannot be made or written to. */
export function openRunFolder(folder: string, startedAt: Instant, { hasJournal } = { hasJournal: true }): RunFolder {
  makeFolder(folder)
  const { journal, tasks } = openFiles(folder, hasJournal)
  const sampler = new SeriesSampler()
  tasks.write(csvLine(TASK_COLUMNS))
  return {
    options: {
      ...(journal === null ? {} : { journalSink: journal }),
      sampler,
      onOutcome: (outcome) => tasks.write(finishedTaskLine(outcome, startedAt)),
    },
    finish(run, timing) {
      for (const open of run.open) tasks.write(openTaskLine(open, startedAt))
      tasks.close()
      journal?.close()
      writeFileSync(join(folder, 'series.csv'), sampler.csv())
      writeJson(join(folder, 'timing.json'), timing)
      writeJson(join(folder, 'result.json'), run.result)
    },
  }
}

export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw new UsageError(`--out ${folder}: cannot be made: ${(error as Error).message}`, { cause: error })
  }
}

export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

function openFiles(folder: string, hasJournal: boolean): { journal: TextFile | null; tasks: TextFile } {
  try {
    return { journal: hasJournal ? new TextFile(join(folder, 'journal.jsonl')) : null, tasks: new TextFile(join(folder, 'tasks.csv')) }
  } catch (error) {
    throw new UsageError(`--out ${folder}: cannot be written to: ${(error as Error).message}`, { cause: error })
  }
}
