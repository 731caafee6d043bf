import { instantCell } from '../import/csv-cells.ts'
import { readCsv } from '../import/csv-rows.ts'
import { SAMPLE_ADJUSTMENTS, SAMPLE_REASONS, SampledGpus } from '../import/gpu-samples.ts'
import type { Importer, ImportLog } from '../import/importer.ts'
import { isNothing, numberOf } from '../import/source-values.ts'

const COLUMNS = {
  required: ['timestamp', 'utilization.gpu'],
  optional: ['index', 'uuid', 'pci.bus_id', 'memory.used'],
  anyOf: [['index', 'uuid', 'pci.bus_id']],
} as const

/** Both spellings that nvidia-smi accepts. */
const NAMES: Readonly<Record<string, string>> = { gpu_uuid: 'uuid', gpu_bus_id: 'pci.bus_id' }

/** The output of `nvidia-smi --query-gpu` with `-l`. Source: man nvidia-smi. */
export const nvidiaSmi: Importer = {
  format: 'nvidia-smi',
  licence: null,
  origin: null,
  options: ['busyAbovePercent', 'vramAboveMib', 'gapMs'],
  about:
    'Samples of GPUs: `nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used ' +
    '--format=csv -l 1`, one row per sample and GPU, with or without units. A task is whatever ' +
    'uses VRAM on one GPU: a job on several GPUs is several tasks.',
  columns: [
    { name: 'timestamp', isRequired: true, becomes: 'time; local' },
    {
      name: 'index',
      isRequired: true,
      becomes: 'the GPU; `id` is this and a number. Also uuid or pci.bus_id',
    },
    { name: 'uuid, pci.bus_id', isRequired: false, becomes: 'the GPU, without an index' },
    {
      name: 'utilization.gpu',
      isRequired: true,
      becomes: 'above `--busy-above` (0%): GPU work from this sample to the next, otherwise idle',
    },
    {
      name: 'memory.used',
      isRequired: false,
      becomes: 'above `--vram-above-mib` (1024): a task is present; `vram_mib` is its maximum',
    },
  ],
  dropped: { ...SAMPLE_REASONS, no_gpu_name: 'it names no GPU' },
  ignored: {},
  adjusted: SAMPLE_ADJUSTMENTS,
  publicData: [],
  async *read(source, options, log) {
    const gpus = new SampledGpus(options, log)
    let knowsVram = true
    for await (const row of readCsv(source, COLUMNS, log, { nameOf })) {
      const { index, uuid, 'pci.bus_id': busId } = row.cells
      const gpu = [index, uuid, busId].find((name) => !isNothing(name))
      if (gpu === undefined) {
        log.drop('no_gpu_name')
        continue
      }
      const at = instantCell(row, 'timestamp', log)
      if (at === null) continue
      const busyPercent = measured(row.cells['utilization.gpu'], 'utilization.gpu', log)
      if (busyPercent === null) continue
      const isSampled = row.cells['memory.used'] !== ''
      const usedMib = isSampled ? measured(row.cells['memory.used'], 'memory.used', log) : null
      if (isSampled && usedMib === null) continue
      if (!isSampled && knowsVram) {
        knowsVram = false
        log.synthesise('vram_mib')
      }
      yield* gpus.take({ gpu, at, busyPercent, usedMib: usedMib === null ? null : Math.round(usedMib) })
    }
    yield* gpus.end()
  },
}

/** `utilization.gpu [%]` → `utilization.gpu`. */
function nameOf(header: string): string {
  const name = header.replace(/\s*\[.*\]$/, '').toLowerCase()
  return NAMES[name] ?? name
}

/** `37 %`, `12345 MiB`, `37`; 0 or more. */
function measured(text: string, column: string, log: ImportLog): number | null {
  const value = numberOf(text.replace(/\s*(%|MiB)$/, ''))
  if (value !== null && value >= 0) return value
  log.drop(isNothing(text) || text.startsWith('[') ? `no_${column}` : `bad_${column}`)
  return null
}
