/** `headroom status`: the cluster on one page. */
import type { Readiness, Summary, Version } from '../../clients/typescript/client.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { percent, plural, size } from '../output/figures.ts'
import { printOne, type Field } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'

/** Exits with 1 when the controller is not ready. */
export async function status({ output, ...server }: CommandOptions): Promise<number> {
  const client = openClient(server)
  const [summary, readiness, version] = await Promise.all([
    client.summary(),
    client.readiness(),
    client.version(),
  ])
  await printOne(
    { url: client.url, version, readiness, summary },
    statusFields(client.url, version, readiness, summary),
    output,
  )
  return readiness.status === 'ready' ? EXIT_OK : EXIT_FAILED
}

function statusFields(
  url: string,
  version: Version,
  readiness: Readiness,
  summary: Summary,
): readonly Field[] {
  const failing = readiness.checks
    .filter((check) => !check.ok)
    .map((check) => `${check.name}: ${check.detail}`)
  return [
    [
      'controller',
      `${url}, Headroom ${version.version}, ${version.store_kind ?? version.fleet} ` +
        `${version.fleet === 'simulated' ? 'fleet' : 'store'}`,
    ],
    ['ready', failing.length === 0 ? 'yes' : ['no', ...failing]],
    ...summaryFields(summary),
  ]
}

/** Returns no fields for a controller that knows no other controller. */
function controllerFields(controllers: Summary['controllers']): readonly Field[] {
  if (controllers === null) return []
  const { leader, standbys } = controllers
  const others =
    standbys === null
      ? 'the number of standbys is unknown'
      : standbys === 0
        ? 'no standby can take over'
        : `${standbys} ${standbys === 1 ? 'standby' : 'standbys'} can take over`
  return [['controllers', `${leader} leads, ${others}`]]
}

export function summaryFields({
  tasks,
  nodes,
  gpus,
  vram,
  overcommit,
  swaps,
  ...summary
}: Summary): readonly Field[] {
  const { by_list: lists, by_state: states } = tasks
  const starved = summary.starvation_percent
  return [
    ...alarmFields(summary.alarms),
    ...controllerFields(summary.controllers),
    [
      'nodes',
      [`${nodes.up} of ${nodes.total} up, ${gpus.up} of ${gpus.total} GPUs`, ...conditionLines(nodes)],
    ],
    [
      'tasks',
      `${lists.running} running, ${lists.pending} pending, ${lists.completed} ended (${states.failed} ` +
        `failed, ${states.lost} lost)`,
    ],
    ...(tasks.stopping === 0 ? [] : ([['stopping', plural(tasks.stopping, 'running task')]] as const)),
    ...lateEndFields(tasks.ended_last_hour),
    ['pending', pendingLines(summary.pending_by_reason)],
    [
      'VRAM',
      `${size(vram.used_mib)} of ${size(vram.physical_mib)} used, ${size(vram.swapped_mib)} swapped out`,
    ],
    ['committed', `${size(vram.committed_mib)} of ${size(vram.commit_limit_mib)}`],
    [
      'overcommit',
      `${overcommit.default_percent}% (${overcommit.source}), ` +
        `${plural(overcommit.nodes_with_override, 'node')} with an override`,
    ],
    ['swaps', `${swaps.outs} out, ${swaps.ins} in since the controller started`],
    [
      'utilization',
      percent(summary.utilization_percent) ?? `unknown: ${summary.utilization_unknown_because}`,
    ],
    [
      'starvation',
      starved === null
        ? `unknown: ${summary.starvation_unknown_because}`
        : `${percent(starved.total)} (queue ${percent(starved.queue)}, swap ${percent(starved.swap)}, ` +
          `compute ${percent(starved.compute)})`,
    ],
  ]
}

/** Empty without alarms. */
function alarmFields(alarms: Summary['alarms']): readonly Field[] {
  if (alarms.length === 0) return []
  const where = (nodes: readonly string[]): string => (nodes.length === 0 ? '' : ` (${nodes.join(', ')})`)
  return [['alarms', alarms.map(({ code, nodes, detail }) => `${code}${where(nodes)}: ${detail}`)]]
}

/** For many tasks only a sample is explained; the line says so. */
function pendingLines({
  counted,
  of,
  is_estimate: isEstimate,
  reasons,
}: Summary['pending_by_reason']): readonly string[] {
  const lines = reasons.map(({ reason, tasks }) => `${tasks} ${reason}`)
  if (!isEstimate) return lines
  return [...lines, `estimated for ${of} tasks from a sample of ${counted}`]
}

const CONDITIONS = [
  'silent',
  'cordoned',
  'auto_cordoned',
  'draining',
  'reserve_breached',
  'over_limit',
  'quarantined',
] as const

/** Empty when all counts are zero. */
function conditionLines(nodes: Summary['nodes']): readonly string[] {
  const words = CONDITIONS.filter((condition) => nodes[condition] > 0).map(
    (condition) => `${nodes[condition]} ${condition}`,
  )
  return nodes.attention === 0
    ? []
    : [`${nodes.attention} ${nodes.attention === 1 ? 'needs' : 'need'} attention: ${words.join(', ')}`]
}

/** Empty when no task failed or was lost. */
function lateEndFields(ends: Summary['tasks']['ended_last_hour']): readonly Field[] {
  if (ends === null || ends.failed + ends.lost === 0) return []
  return [['last hour', `${plural(ends.failed, 'task')} failed, ${ends.lost} lost since ${ends.since}`]]
}
