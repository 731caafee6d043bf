/**
 * `headroom leader`: through a controller, or on a host of a controller through the database, which also
 * answers while no controller does.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { HeadroomClient, Leader } from '../../clients/typescript/client.ts'
import { askToResign, viewLeader } from '../../controller/adapters/postgres/leader-commands.ts'
import type { StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { presentLeader } from '../../controller/api/leader/present.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'
import { openClient, type CommandOptions, type ServerOption } from '../command/session.ts'
import { printList } from '../output/table.ts'

const HAND_OVER_WITHIN_MS = 15_000
const LOOK_EVERY_MS = 100

export async function showLeader({ output, ...server }: CommandOptions): Promise<number> {
  const place = placeFor(server)
  const found =
    place === null ? await openClient(server).leader.get() : presentLeader(await viewLeader(place))
  await printList(rowsOf(found), COLUMNS, output)
  return EXIT_OK
}

export async function resignLeader({
  to = null,
  ...server
}: ServerOption & { readonly to?: string | null }): Promise<number> {
  const from = performance.now()
  const place = placeFor(server)
  const { before, after } =
    place === null
      ? await resignThrough(openClient(server), to)
      : presented(await askToResign(place, to, HAND_OVER_WITHIN_MS))
  const name = after?.leader?.name
  const ms = Math.round(performance.now() - from)
  const isDone = name !== undefined && (to === null ? name !== before.leader?.name : name === to)
  if (isDone)
    process.stdout.write(`${name} became the leader with epoch ${after?.epoch}, ${ms} ms after the request\n`)
  else process.stderr.write(`headroom: ${failure(to, after)}\n`)
  return isDone ? EXIT_OK : EXIT_FAILED
}

function failure(to: string | null, after: Leader | null): string {
  const how =
    after === null
      ? `no other controller became the leader within ${HAND_OVER_WITHIN_MS / 1_000} s`
      : after.leader === null
        ? 'there is no leader'
        : `${after.leader.name} is the leader again, with epoch ${after.epoch}`
  return `${to ?? 'No standby'} did not take over: ${how}. Run \`headroom leader\` for details.`
}

/** Null: asks a controller. The URL is not an argument, because every user could read its password. */
function placeFor({ server }: ServerOption): StorePlace | null {
  return server === undefined ? readSettings(process.env).storePlace : null
}

interface Handed {
  readonly before: Leader
  /** The next term; null: none began in time. */
  readonly after: Leader | null
}

function presented({ before, after }: Awaited<ReturnType<typeof askToResign>>): Handed {
  return { before: presentLeader(before), after: after === null ? null : presentLeader(after) }
}

async function resignThrough({ leader }: HeadroomClient, to: string | null): Promise<Handed> {
  const before = await leader.resign({ to })
  const until = performance.now() + HAND_OVER_WITHIN_MS
  while (performance.now() < until) {
    // Between two terms no controller may answer.
    const after = await leader.get({ signal: AbortSignal.timeout(HAND_OVER_WITHIN_MS) }).catch(() => null)
    if (after !== null && after.epoch > before.epoch) return { before, after }
    await delay(LOOK_EVERY_MS)
  }
  return { before, after: null }
}

interface ControllerRow {
  readonly name: string
  readonly role: 'leader' | 'standby' | 'standby, never leads'
  readonly epoch: number | null
  readonly url: string | null
  readonly version: string | null
  readonly seen_ms_ago: number | null
  readonly lag_ms: number | null
  readonly not_ready: Leader['standbys'][number]['not_ready']
}

function rowsOf({ leader, epoch, standbys }: Leader): readonly ControllerRow[] {
  const unknown = { version: null, seen_ms_ago: null, lag_ms: null, not_ready: null }
  const first: readonly ControllerRow[] =
    leader === null ? [] : [{ ...leader, role: 'leader', epoch, ...unknown }]
  const others = standbys.map(({ may_lead: mayLead, ...standby }): ControllerRow => ({
    ...standby,
    epoch: null,
    role: mayLead ? 'standby' : 'standby, never leads',
  }))
  return [...first, ...others]
}

const COLUMNS = [
  { title: 'NAME', of: ({ name }: ControllerRow) => name },
  { title: 'ROLE', of: ({ role }: ControllerRow) => role },
  { title: 'EPOCH', of: ({ epoch }: ControllerRow) => epoch, isNumber: true },
  { title: 'SEEN MS AGO', of: ({ seen_ms_ago }: ControllerRow) => seen_ms_ago, isNumber: true },
  { title: 'LAG MS', of: ({ lag_ms }: ControllerRow) => lag_ms, isNumber: true },
  { title: 'NOT READY', of: ({ not_ready }: ControllerRow) => not_ready },
  { title: 'VERSION', of: ({ version }: ControllerRow) => version },
  { title: 'ADDRESS', of: ({ url }: ControllerRow) => url },
]
