import type { FastifyReply } from 'fastify'
import type { ApiApp, ApiContext } from '../context.ts'
import { sendJson } from '../http/compressed.ts'
import { csvOf, orCsv, sendCsv, type CsvColumns } from '../http/csv.ts'
import { presentInstant } from '../http/instant.ts'
import { nodeIdOf, requireGroup } from '../http/names.ts'
import { operation } from '../http/operation.ts'
import { createGpuFigures, type FleetFigures, type GpuFigures } from './gpu-figures.ts'
import { residentMib, sortedGpus, usedMib } from './gpu-list.ts'
import { GpuListSchema, GpuQuerySchema, type GpuColumns, type GpuListBody } from './schema.ts'

const listGpus = operation({
  operationId: 'listGpus',
  role: 'viewer',
  answerHeaders: ['Vary', 'Content-Encoding', 'Content-Disposition'],
  summary: 'GPUs with VRAM, utilization, swaps and starvation, in columnar form',
  description:
    'Returns up to 10,000 GPUs in one response, compressed if the client accepts gzip. Values for the ' +
    'last minute and hour come from the series (docs/series.md) and are null if unknown.',
  tags: ['nodes'],
  querystring: GpuQuerySchema,
  response: { 200: orCsv(GpuListSchema) },
})

const DEFAULT_LIMIT = 1000

const CSV: CsvColumns<GpuFigures> = {
  node_id: ({ node }) => node.id,
  node: ({ node }) => node.name,
  index: ({ gpu }) => gpu.index,
  model: ({ gpu }) => gpu.model,
  status: ({ node }) => node.status,
  tasks: ({ gpu }) => gpu.placements.length,
  physical_mib: ({ gpu }) => gpu.physicalMib,
  used_mib: ({ gpu }) => usedMib(gpu),
  resident_mib: ({ gpu }) => residentMib(gpu),
  out_mib: ({ outMib }) => outMib,
  utilization_percent: ({ utilizationPercent }) => utilizationPercent,
  starvation_percent: ({ starvationPercent }) => starvationPercent,
  swap_outs: ({ swapOuts }) => swapOuts,
  copy_seconds: ({ copySeconds }) => copySeconds,
  lost_seconds: ({ lostSeconds }) => lostSeconds,
}

/** GET /gpus. */
export function gpuRoutes(app: ApiApp, { views, series }: ApiContext): void {
  const figures = createGpuFigures(views, series)
  app.get('/gpus', { schema: listGpus }, async ({ query, headers }, reply) => {
    const { node, group, sort = 'registered', order = null, limit = DEFAULT_LIMIT, cursor = null } = query
    const nodeId = node === undefined ? null : nodeIdOf(views, 'node', node)
    if (group !== undefined) requireGroup(views, 'group', group)
    const fleet = figures()
    const matching = fleet.gpus.filter(
      ({ node: { id, groups } }) =>
        (nodeId === null || id === nodeId) && (group === undefined || groups.includes(group)),
    )
    const { rest, total, cursorAfter } = sortedGpus(matching, { sort, order, cursor })
    if (query.format === 'csv') return sendCsv(reply, 'gpus', query, csvOf(CSV, rest))
    return sendJson(reply as FastifyReply, headers['accept-encoding'], {
      ...presentGpus(fleet, rest.slice(0, limit)),
      next_cursor: cursorAfter(limit),
      total,
    })
  })
}

function presentGpus(
  { at, minute, hour }: FleetFigures,
  gpus: readonly GpuFigures[],
): Omit<GpuListBody, 'next_cursor' | 'total'> {
  const nodes = new Places(gpus.map(({ node }) => node))
  const models = new Places(gpus.map(({ gpu }) => gpu.model))
  const column = <T>(of: (figures: GpuFigures) => T): T[] => gpus.map(of)
  const columns: GpuColumns = {
    node: column(({ node }) => nodes.placeOf(node)),
    index: column(({ gpu }) => gpu.index),
    model: column(({ gpu }) => models.placeOf(gpu.model)),
    tasks: column(({ gpu }) => gpu.placements.length),
    physical_mib: column(({ gpu }) => gpu.physicalMib),
    used_mib: column(({ gpu }) => usedMib(gpu)),
    resident_mib: column(({ gpu }) => residentMib(gpu)),
    out_mib: column(({ outMib }) => outMib),
    utilization_percent: column(({ utilizationPercent }) => utilizationPercent),
    starvation_percent: column(({ starvationPercent }) => starvationPercent),
    swap_outs: column(({ swapOuts }) => swapOuts),
    copy_seconds: column(({ copySeconds }) => copySeconds),
    lost_seconds: column(({ lostSeconds }) => lostSeconds),
  }
  return {
    at: presentInstant(at),
    minute: { from: presentInstant(minute.from), to: presentInstant(minute.to) },
    hour: { from: presentInstant(hour.from), to: presentInstant(hour.to) },
    nodes: nodes.all.map(({ id, name, status, isCordoned }) => ({
      node_id: id,
      name,
      status,
      cordoned: isCordoned,
    })),
    models: models.all,
    columns,
  }
}

/** Each value once, in the order of their first use. */
class Places<T> {
  readonly all: readonly T[]
  readonly #places: ReadonlyMap<T, number>

  constructor(values: readonly T[]) {
    this.all = [...new Set(values)]
    this.#places = new Map(this.all.map((value, place) => [value, place]))
  }

  placeOf(value: T): number {
    return this.#places.get(value) as number
  }
}
