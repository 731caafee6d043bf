import { basename } from 'node:path'
import type { Mib, Priority } from '../../../protocol/units.ts'
import { secondsCell, textCell, wholeCell } from '../import/csv-cells.ts'
import { type CsvRow, readCsv } from '../import/csv-rows.ts'
import {
  DEFAULT_RESERVE_MIB,
  type ImportedTask,
  type Importer,
  type ImportLog,
  type ImportOptions,
  MAX_TASK_GPUS,
  plainTask,
  priorityOf,
} from '../import/importer.ts'
import { modelsOf, readOpenbNodes } from '../import/openb-fleet.ts'
import { TraceError } from '../trace-error.ts'
import { smallestVramMib, withDefaultVram } from '../import/vram-map.ts'

const REQUIRED = [
  'name',
  'num_gpu',
  'gpu_milli',
  'gpu_spec',
  'qos',
  'creation_time',
  'deletion_time',
] as const
const OPTIONAL = ['cpu_milli', 'memory_mib'] as const
type Column = (typeof REQUIRED)[number] | (typeof OPTIONAL)[number]

/** A whole GPU. */
const WHOLE_GPU_MILLI = 1000
const SHORTEST_MS = 1000

/** Pods that serve users, and pods with guaranteed resources, are never swapped out for others. */
const PRIORITY_OF_QOS: ReadonlyMap<string, Priority> = new Map([
  ['LS', 0],
  ['Guaranteed', 0],
])

/**
 * Alibaba's GPU cluster of 2023 ("openb"), one pod per row, times in seconds.
 * - A pod was present from creation_time to deletion_time, and for at least 1 s.
 * - gpu_milli is a share of the GPU's time; the trace's own sharing model assumes the same share of its VRAM.
 *   VRAM = floor(gpu_milli * (V - reserve) / 1000), where V is the smallest VRAM among the models of
 *   gpu_spec, else of the fleet (`nodesFile`), else `vramMib`, else of DEFAULT_VRAM_MAP.
 * - gpu_milli 1000 uses its GPU exclusively.
 * - gpu_spec as a constraint, CPU and host memory are counted as ignored.
 */
export const openb: Importer = {
  format: 'openb',
  licence: 'Apache-2.0',
  origin: 'Alibaba cluster-trace-gpu-v2023',
  options: ['nodesFile'],
  about:
    "Pods of Alibaba's GPU cluster of 2023 (openb): CSV, one pod per row, times in seconds. " +
    '`--nodes` reads the node list of the trace.',
  columns: [
    { name: 'name', isRequired: true, becomes: '`id`' },
    { name: 'num_gpu', isRequired: true, becomes: '`gpus`' },
    {
      name: 'gpu_milli',
      isRequired: true,
      becomes:
        '`vram_mib` = floor(gpu_milli × (V − reserve) ÷ 1000); 1000 also makes `gpu_mode` ' +
        'exclusive. The reserve is `--reserve-mib`',
    },
    {
      name: 'gpu_spec',
      isRequired: true,
      becomes:
        'V: the smallest VRAM among its models (`--vram-map`), else of the fleet (`--nodes`), ' +
        'else `--vram-mib`, else 16384',
    },
    {
      name: 'qos',
      isRequired: true,
      becomes: '`priority`: LS and Guaranteed P0, others P2; `--priority-map` maps these values',
    },
    { name: 'creation_time', isRequired: true, becomes: '`at`' },
    {
      name: 'deletion_time',
      isRequired: true,
      becomes: 'the end of the residence, which lasts at least 1 s',
    },
    { name: 'cpu_milli, memory_mib', isRequired: false, becomes: 'nothing' },
  ],
  dropped: { no_gpu: 'num_gpu is 0' },
  ignored: {
    gpu_spec: 'the pod required certain models',
    cpu: 'it requested CPUs',
    host_memory: 'it requested host memory',
  },
  adjusted: {
    shorter_than_1s_to_1s: 'it was present for less than 1 s',
    deletion_before_creation_to_1s: 'its end is before its start',
  },
  publicData: [
    {
      name: 'cluster-trace-gpu-v2023, 8,152 pods and 1,213 nodes',
      licence: 'Apache-2.0',
      where: 'github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/csv',
    },
  ],
  async *read(source, options, log) {
    const vramOfPod = await podVram(source.file, options, log)
    log.synthesise('vram_mib')
    for await (const row of readCsv(source, { required: REQUIRED, optional: OPTIONAL }, log)) {
      const found = readPod(row, log)
      if (found === null) continue
      noteConstraints(row, log)
      const { gpuMilli, ...pod } = found
      const { qos, gpu_spec: gpuSpec } = row.cells
      const vramMib = Math.max(1, Math.floor((gpuMilli * vramOfPod(gpuSpec, row.line)) / WHOLE_GPU_MILLI))
      const priority = priorityOf([qos], options, PRIORITY_OF_QOS.get(qos))
      yield plainTask(
        {
          ...pod,
          vram_mib: vramMib,
          gpu_mode: gpuMilli === WHOLE_GPU_MILLI ? 'exclusive' : 'shared',
          priority,
        },
        options,
      )
    }
  },
}

type Pod = Pick<ImportedTask, 'id' | 'at' | 'gpus' | 'work'> & { readonly gpuMilli: number }

/** Null if the row was dropped. */
function readPod(row: CsvRow<Column>, log: ImportLog): Pod | null {
  const gpus = wholeCell(row, 'num_gpu', 0, MAX_TASK_GPUS, log)
  if (gpus === null) return null
  if (gpus === 0) return dropped(log, 'no_gpu')
  const id = textCell(row, 'name', log)
  if (id === null) return null
  const gpuMilli = wholeCell(row, 'gpu_milli', 1, WHOLE_GPU_MILLI, log)
  if (gpuMilli === null) return null
  const createdMs = secondsCell(row, 'creation_time', log)
  if (createdMs === null) return null
  const deletedMs = secondsCell(row, 'deletion_time', log)
  if (deletedMs === null) return null
  if (deletedMs < createdMs) log.adjust('deletion_before_creation_to_1s')
  else if (deletedMs < createdMs + SHORTEST_MS) log.adjust('shorter_than_1s_to_1s')
  return {
    id,
    at: createdMs,
    gpus,
    gpuMilli,
    work: { kind: 'residence', ms: Math.max(SHORTEST_MS, deletedMs - createdMs) },
  }
}

function dropped(log: ImportLog, reason: string): null {
  log.drop(reason)
  return null
}

function noteConstraints(row: CsvRow<Column>, log: ImportLog): void {
  if (row.cells.gpu_spec !== '') log.ignore('gpu_spec')
  if (Number(row.cells.cpu_milli) > 0) log.ignore('cpu')
  if (Number(row.cells.memory_mib) > 0) log.ignore('host_memory')
}

/** VRAM that a whole GPU offers a pod with that gpu_spec: V - reserve. */
async function podVram(
  file: string,
  options: ImportOptions,
  log: ImportLog,
): Promise<(gpuSpec: string, line: number) => Mib> {
  const vramMap = withDefaultVram(options.vramMap)
  const reserveMib = options.reserveMib ?? DEFAULT_RESERVE_MIB
  const offered = (vramMib: Mib): Mib => {
    if (vramMib > reserveMib) return vramMib - reserveMib
    throw new TraceError({ field: 'reserve' }, `${reserveMib} MiB leaves nothing of a GPU of ${vramMib} MiB`)
  }
  const anyModelMib = offered(await fleetVramMib(options, log))
  const bySpec = new Map([['', anyModelMib]])
  return (gpuSpec, line) => {
    let mib = bySpec.get(gpuSpec)
    if (mib === undefined) {
      const models = [...new Set(gpuSpec.split('|').map((model) => model.trim()))]
      mib = offered(smallestVramMib(models, vramMap, { file, line, field: 'gpu_spec' }))
      bySpec.set(gpuSpec, mib)
    }
    return mib
  }
}

/** V of a pod that names no model. */
async function fleetVramMib(options: ImportOptions, log: ImportLog): Promise<Mib> {
  const vramMap = withDefaultVram(options.vramMap)
  if (options.nodesFile === undefined) return options.vramMib ?? Math.min(...vramMap.values())
  const nodes = await readOpenbNodes(options.nodesFile)
  log.note('nodes', basename(options.nodesFile))
  log.note('nodes_sha256', nodes.sha256)
  return smallestVramMib(modelsOf(nodes.groups), vramMap, { file: options.nodesFile, field: 'model' })
}
