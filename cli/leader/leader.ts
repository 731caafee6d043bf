/** `headroom leader`: on a host of a controller, with the settings of the controller. */
import {
  askToResign,
  viewLeader,
  type LeaderView,
} from '../../controller/adapters/postgres/leader-commands.ts'
import type { StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'
import type { OutputFormat } from '../output/formats.ts'
import { printList } from '../output/table.ts'

const HAND_OVER_WITHIN_MS = 15_000

export async function showLeader(format: OutputFormat): Promise<void> {
  const found = await viewLeader(placeOfSettings())
  await printList(rowsOf(found), COLUMNS, format)
}

export async function resignLeader(to: string | null): Promise<void> {
  const from = performance.now()
  const { leader, epoch } = await askToResign(placeOfSettings(), to, HAND_OVER_WITHIN_MS)
  const ms = Math.round(performance.now() - from)
  process.stdout.write(`${leader?.name ?? ''} leads since epoch ${epoch}, ${ms} ms after the request\n`)
}

/** The URL is no argument, because every user of the host could read its password there. */
function placeOfSettings(): StorePlace {
  const { storePlace } = readSettings(process.env)
  if (storePlace === null)
    throw new UsageError(
      'CONTROLLER_STORE_URL is not set: a controller on SQLite has no standby. Where you have the address ' +
        'of a controller only, headroom status names the leader',
    )
  return storePlace
}

interface ControllerRow {
  readonly name: string
  readonly role: 'leader' | 'standby' | 'standby, never leads'
  readonly epoch: number | null
  readonly url: string
  readonly version: string | null
  readonly seen_ms_ago: number | null
  readonly lag_ms: number | null
}

function rowsOf({ leader, epoch, standbys }: LeaderView): readonly ControllerRow[] {
  const first: readonly ControllerRow[] =
    leader === null
      ? []
      : [{ ...leader, role: 'leader', epoch, version: null, seen_ms_ago: null, lag_ms: null }]
  const others = standbys.map(({ name, url, version, mayLead, ageMs, lagMs }): ControllerRow => ({
    ...{ name, url, version, epoch: null, seen_ms_ago: ageMs, lag_ms: lagMs },
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
  { title: 'VERSION', of: ({ version }: ControllerRow) => version },
  { title: 'ADDRESS', of: ({ url }: ControllerRow) => url },
]
