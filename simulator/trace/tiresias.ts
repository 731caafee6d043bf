import { readCsv, secondsCell, wholeCell } from './csv-rows.ts'
import type { FileBytes } from './file-bytes.ts'
import { DEFAULT_TASK_VRAM_MIB, type ImportedTask, type Importer, type ImportLog, type ImportOptions } from './importer.ts'

const REQUIRED = ['job_id', 'num_gpu', 'submit_time', 'duration'] as const
const MAX_GPUS = 1024

/**
 * The job files of the Tiresias simulator (SymbioticLab/Tiresias, simulator/60_job.csv), one job a row, times in seconds. They know no VRAM:
 * it is `vramMib` for every job, or whole GPUs with `exclusive`. Iterations, model name and interval play no part.
 */
export const tiresias: Importer = {
  format: 'tiresias',
  requiredColumns: REQUIRED,
  licence: null,
  origin: null,
  read: readJobs,
}

async function* readJobs(source: FileBytes, options: ImportOptions, log: ImportLog): AsyncGenerator<ImportedTask> {
  log.synthesise('vram_mib')
  for await (const row of readCsv(source, { required: REQUIRED }, log)) {
    const gpus = wholeCell(row, 'num_gpu', 0, MAX_GPUS, log)
    if (gpus === null) continue
    const at = secondsCell(row, 'submit_time', log)
    if (at === null) continue
    const ms = secondsCell(row, 'duration', log)
    if (ms === null) continue
    const reason =
      row.cells.job_id === '' ? 'no_job_id' : gpus === 0 ? 'no_gpu' : ms === 0 ? 'zero_duration' : ms < 0 ? 'bad_duration' : null
    if (reason !== null) {
      log.drop(reason)
      continue
    }
    yield {
      id: row.cells.job_id,
      line: row.line,
      at,
      gpus,
      vram_mib: options.vramMib ?? DEFAULT_TASK_VRAM_MIB,
      gpu_mode: 'shared',
      priority: 2,
      noswap: 0,
      groups: [],
      owner: null,
      work: { kind: 'residence', ms },
      alloc: [],
      cancel_at: null,
    }
  }
}
