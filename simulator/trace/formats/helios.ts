import type { DurationMs } from '../../../protocol/units.ts'
import { instantCell, secondsCell, textCell, wholeCell } from '../import/csv-cells.ts'
import { type CsvRow, readCsv } from '../import/csv-rows.ts'
import {
  type Importer,
  type ImportLog,
  MAX_TASK_GPUS,
  ownerOf,
  plainTask,
  priorityOf,
} from '../import/importer.ts'
import { RESIDENCE_REASONS, residenceBetween, residenceOf } from '../import/residence.ts'
import { isNothing } from '../import/source-values.ts'

const COLUMNS = {
  required: ['job_id', 'gpu_num', 'submit_time'],
  optional: ['duration', 'start_time', 'end_time', 'user', 'vc', 'cpu_num', 'node_num', 'state'],
  anyOf: [['duration', 'end_time']],
} as const
type Row = CsvRow<(typeof COLUMNS)['required'][number] | (typeof COLUMNS)['optional'][number]>

/**
 * SenseTime's Helios clusters of 2020 (S-Lab-System-Group/HeliosData, cluster_log.csv): one job per row,
 * local times of one zone without daylight saving time.
 */
export const helios: Importer = {
  format: 'helios',
  licence: 'CC-BY-4.0',
  origin: 'SenseTime Helios (HeliosData)',
  options: [],
  about:
    'Job logs of the four Helios clusters of 2020: CSV, one job per row, local times (UTC+8, no ' +
    'daylight saving time).',
  columns: [
    { name: 'job_id', isRequired: true, becomes: '`id`' },
    { name: 'gpu_num', isRequired: true, becomes: '`gpus`' },
    { name: 'submit_time', isRequired: true, becomes: '`at`' },
    { name: 'duration', isRequired: true, becomes: 'the residence, in seconds; else end_time − start_time' },
    { name: 'start_time, end_time', isRequired: false, becomes: 'the residence, without a duration' },
    { name: 'user', isRequired: false, becomes: '`owner`' },
    { name: 'vc', isRequired: false, becomes: '`priority` by `--priority-map`; else P2' },
    { name: 'state', isRequired: false, becomes: 'why a job without a start never started' },
    { name: 'cpu_num, node_num, queue', isRequired: false, becomes: 'nothing' },
  ],
  dropped: { ...RESIDENCE_REASONS, no_gpu: 'gpu_num is 0', never_started: 'it has no start_time' },
  ignored: {
    cpu: 'it had CPUs',
    several_nodes: 'it was spread over nodes',
    vc: 'it was bound to a virtual cluster',
  },
  adjusted: {},
  publicData: [
    {
      name: 'Helios: Venus, Earth, Saturn, Uranus, 3.3 million jobs',
      licence: 'CC-BY-4.0',
      where: 'github.com/S-Lab-System-Group/HeliosData',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const row of readCsv(source, COLUMNS, log)) {
      const gpus = wholeCell(row, 'gpu_num', 0, MAX_TASK_GPUS, log)
      if (gpus === null) continue
      if (gpus === 0) {
        log.drop('no_gpu')
        continue
      }
      const id = textCell(row, 'job_id', log)
      const at = id === null ? null : instantCell(row, 'submit_time', log)
      const ms = at === null ? null : timeOf(row, log)
      if (id === null || at === null || ms === null) continue
      const { user, vc, cpu_num: cpus, node_num: nodes } = row.cells
      if (Number(cpus) > 0) log.ignore('cpu')
      if (Number(nodes) > 1) log.ignore('several_nodes')
      if (!isNothing(vc)) log.ignore('vc')
      yield plainTask(
        {
          id,
          at,
          gpus,
          priority: priorityOf([vc], options),
          owner: ownerOf(user),
          work: { kind: 'residence', ms },
        },
        options,
      )
    }
  },
}

function timeOf(row: Row, log: ImportLog): DurationMs | null {
  const { duration, start_time: start, end_time: end } = row.cells
  if (isNothing(start) && (end !== '' || start !== '')) {
    log.drop('never_started')
    return null
  }
  if (!isNothing(duration)) {
    const ms = secondsCell(row, 'duration', log)
    return ms === null ? null : residenceOf(ms, log)
  }
  const startMs = instantCell(row, 'start_time', log)
  const endMs = startMs === null ? null : instantCell(row, 'end_time', log)
  return startMs === null || endMs === null ? null : residenceBetween(startMs, endMs, log)
}
