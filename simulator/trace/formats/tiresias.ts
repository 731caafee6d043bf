import { secondsCell, textCell, wholeCell } from '../import/csv-cells.ts'
import { readCsv } from '../import/csv-rows.ts'
import { type Importer, MAX_TASK_GPUS, plainTask } from '../import/importer.ts'

const REQUIRED = ['job_id', 'num_gpu', 'submit_time', 'duration'] as const

/**
 * The job files of the Tiresias simulator (SymbioticLab/Tiresias, simulator/60_job.csv), one job per row,
 * times in seconds. They contain no VRAM: it is `vramMib` for every job, or whole GPUs with `exclusive`.
 * Iterations, model name and interval are ignored.
 */
export const tiresias: Importer = {
  format: 'tiresias',
  licence: null,
  origin: null,
  options: [],
  about:
    'Job files of the Tiresias simulator: CSV, one job per row, times in seconds. Other ' +
    'simulators of GPU clusters use the same columns.',
  columns: [
    { name: 'job_id', isRequired: true, becomes: '`id`' },
    { name: 'num_gpu', isRequired: true, becomes: '`gpus`' },
    { name: 'submit_time', isRequired: true, becomes: '`at`' },
    { name: 'duration', isRequired: true, becomes: 'the residence' },
    { name: 'iterations, model_name, interval', isRequired: false, becomes: 'nothing' },
  ],
  dropped: {
    no_gpu: 'num_gpu is 0',
    zero_duration: 'duration is 0',
    bad_duration: 'duration is negative, or not a number',
  },
  ignored: {},
  adjusted: {},
  publicData: [
    {
      name: 'Tiresias, 60 jobs',
      licence: 'Apache-2.0',
      where: 'github.com/SymbioticLab/Tiresias, simulator/60_job.csv',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const row of readCsv(source, { required: REQUIRED }, log)) {
      const gpus = wholeCell(row, 'num_gpu', 0, MAX_TASK_GPUS, log)
      if (gpus === null) continue
      const at = secondsCell(row, 'submit_time', log)
      if (at === null) continue
      const ms = secondsCell(row, 'duration', log)
      if (ms === null) continue
      const id = textCell(row, 'job_id', log)
      if (id === null) continue
      const reason = gpus === 0 ? 'no_gpu' : ms === 0 ? 'zero_duration' : ms < 0 ? 'bad_duration' : null
      if (reason !== null) log.drop(reason)
      else yield plainTask({ id, at, gpus, work: { kind: 'residence', ms } }, options)
    }
  },
}
