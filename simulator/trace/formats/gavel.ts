import { secondsCell, textCell, wholeCell } from '../import/csv-cells.ts'
import { readCsv } from '../import/csv-rows.ts'
import { type Importer, MAX_TASK_GPUS, ownerOf, plainTask, priorityOf } from '../import/importer.ts'
import { RESIDENCE_REASONS, residenceOf } from '../import/residence.ts'

const COLUMNS = {
  required: ['job_id', 'gpus', 'arrival_s', 'duration_s_v100'],
  optional: ['vc', 'model', 'total_steps', 'duration_extrapolated'],
} as const

/**
 * Gavel's traces (stanford-futuredata/gavel, scheduler/traces) joined with its throughputs: its own files
 * contain steps, not times; duration = total_steps / throughput on a V100 is a column.
 */
export const gavel: Importer = {
  format: 'gavel',
  licence: 'MIT',
  origin: 'Gavel, scheduler/traces; arrivals derive from Philly (CC-BY-4.0)',
  options: [],
  about:
    'Traces of the Gavel scheduler, joined with its measured throughputs: CSV, one job per row, ' +
    "times in seconds. Gavel's own .trace files contain steps instead of times and must be " +
    'joined first.',
  columns: [
    { name: 'job_id', isRequired: true, becomes: '`id`' },
    { name: 'gpus', isRequired: true, becomes: '`gpus`' },
    { name: 'arrival_s', isRequired: true, becomes: '`at`' },
    { name: 'duration_s_v100', isRequired: true, becomes: 'the residence' },
    { name: 'vc', isRequired: false, becomes: '`owner`; `priority` by `--priority-map`, else P2' },
    {
      name: 'duration_extrapolated',
      isRequired: false,
      becomes: '1 counts as extrapolated: the duration was never measured at that number of GPUs',
    },
    { name: 'model, total_steps', isRequired: false, becomes: 'nothing' },
  ],
  dropped: { ...RESIDENCE_REASONS, no_gpu: 'gpus is 0' },
  ignored: {},
  adjusted: { duration_extrapolated: 'its duration is extrapolated, according to the source' },
  publicData: [
    {
      name: 'Gavel, msr traces',
      licence: 'MIT; arrivals CC-BY-4.0',
      where: 'github.com/stanford-futuredata/gavel, scheduler/traces/msr',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const row of readCsv(source, COLUMNS, log)) {
      const gpus = wholeCell(row, 'gpus', 0, MAX_TASK_GPUS, log)
      if (gpus === null) continue
      if (gpus === 0) {
        log.drop('no_gpu')
        continue
      }
      const id = textCell(row, 'job_id', log)
      const at = id === null ? null : secondsCell(row, 'arrival_s', log)
      const lasted = at === null ? null : secondsCell(row, 'duration_s_v100', log)
      const ms = lasted === null ? null : residenceOf(lasted, log)
      if (id === null || at === null || ms === null) continue
      const { vc, duration_extrapolated: isExtrapolated } = row.cells
      if (Number(isExtrapolated) === 1) log.adjust('duration_extrapolated')
      yield plainTask(
        {
          id,
          at,
          gpus,
          priority: priorityOf([vc], options),
          owner: ownerOf(vc),
          work: { kind: 'residence', ms },
        },
        options,
      )
    }
  },
}
