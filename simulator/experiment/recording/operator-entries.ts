/** Converts a recorded command to an operator request of a scenario. */
import type { ConfigFields } from '../../../controller/model/config.ts'
import type { Group } from '../../../controller/model/group.ts'

/**
 * Returns method, path and body as written in a scenario; null: a scenario cannot express it.
 * @param nodeName null: it is not in the fleet
 */
export function operatorEntry(
  name: string,
  args: readonly unknown[],
  nodeName: (id: string) => string | undefined,
): object | null {
  const onNode = (id: unknown, verb: string): string | null => {
    const known = nodeName(String(id))
    return known === undefined ? null : `/api/v1/nodes/{node:${known}}/${verb}`
  }
  const onTask = (verb: string): object => ({
    post: `/api/v1/tasks/${encodeURIComponent(String(args[0]))}/${verb}`,
  })
  switch (name) {
    case 'putConfig':
      return { put: '/api/v1/config', body: args[0] as Partial<ConfigFields> }
    case 'putNodeConfig': {
      const path = onNode(args[0], 'config')
      const { overcommitPercent, reserveMib } = args[1] as {
        readonly overcommitPercent?: number | null
        readonly reserveMib?: number | null
      }
      const body = {
        ...(overcommitPercent === undefined ? {} : { overcommit_vram_percent: overcommitPercent }),
        ...(reserveMib === undefined ? {} : { safety_reserve_mib: reserveMib }),
      }
      return path === null ? null : { put: path, body }
    }
    case 'setCordon':
      return post(onNode(args[0], args[1] === true ? 'cordon' : 'uncordon'))
    case 'drainNode':
      return post(
        onNode(
          args[0],
          args[1] === null
            ? 'drain'
            : `drain?requeue=true&after_seconds=${Math.round(Number(args[1]) / 1000)}`,
        ),
      )
    case 'putGroup': {
      const { id, nodeIds } = args[0] as Group
      const members = nodeIds.map(nodeName)
      if (members.includes(undefined)) return null
      return {
        put: `/api/v1/groups/${encodeURIComponent(id)}`,
        body: { node_ids: members.map((member) => `{node:${member}}`) },
      }
    }
    case 'deleteGroup':
      return {
        delete:
          `/api/v1/groups/${encodeURIComponent(String(args[0]))}` + (args[1] === true ? '?force=true' : ''),
      }
    case 'updateTask':
      return taskPatch(String(args[0]), args[1] as Readonly<Record<string, unknown>>)
    case 'holdTask':
      return onTask('hold')
    case 'releaseTask':
      return onTask('release')
    case 'swapOutTask':
      return onTask('swap-out')
    case 'swapInTask':
      return onTask('swap-in')
    default:
      return null
  }
}

function post(path: string | null): object | null {
  return path === null ? null : { post: path }
}

const PATCH_FIELDS: Readonly<Record<string, string>> = {
  vramMib: 'vram_mib',
  onNodeLoss: 'on_node_loss',
  stopGraceSeconds: 'stop_grace_seconds',
}

/**
 * Labels do not influence decisions, and may contain more than a file should; null: nothing else was changed.
 */
function taskPatch(
  id: string,
  { labels: _left, ...change }: Readonly<Record<string, unknown>>,
): object | null {
  if (Object.keys(change).length === 0) return null
  return {
    patch: `/api/v1/tasks/${encodeURIComponent(id)}`,
    body: Object.fromEntries(Object.entries(change).map(([key, value]) => [PATCH_FIELDS[key] ?? key, value])),
  }
}
