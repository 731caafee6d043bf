/** Shows who leads, and asks the leader to resign: commands of an operator on a host of a controller. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { handoverRefusal, type LeaderView } from '../../ports/handover.ts'
import { StoreFault } from '../../ports/store.ts'
import { faultOf } from './faults.ts'
import { viewOfLeader } from './leader-view.ts'
import { connect, COPYING, kyselyOn } from './session.ts'
import { describePlace, type StorePlace } from './store-url.ts'

const LOOK_EVERY_MS = 100

/** @throws StoreFault */
export function viewLeader(place: StorePlace): Promise<LeaderView> {
  return connected(place, (client) => viewOfLeader(kyselyOn(client)))
}

export interface Resigned {
  readonly before: LeaderView
  /** The next term, once its leader answers requests; null: none began in time. */
  readonly after: LeaderView | null
}

/**
 * @param to name of the next leader; null: any standby
 * @throws StoreFault if no standby can take over
 */
export function askToResign(place: StorePlace, to: string | null, withinMs: number): Promise<Resigned> {
  return connected(place, async (client) => {
    const db = kyselyOn(client)
    const before = await viewOfLeader(db)
    const refusal = handoverRefusal(before, to)
    if (refusal !== null) throw new StoreFault(refusal)
    await client.query('update headroom.lease set is_asked = 1, asked_heir = $1', [to])
    const until = performance.now() + withinMs
    for (;;) {
      const after = await viewOfLeader(db)
      if (after.epoch > before.epoch && after.leader !== null && after.leader.url !== '')
        return { before, after }
      if (performance.now() >= until) {
        await client.query('update headroom.lease set is_asked = 0, asked_heir = null')
        return { before, after: null }
      }
      await delay(LOOK_EVERY_MS)
    }
  })
}

async function connected<T>(place: StorePlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const name = describePlace(place)
  try {
    const { client } = await connect(place, COPYING)
    return await work(client).finally(() => client.end())
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === UNDEFINED_TABLE)
      throw new StoreFault(`${name} has no lease: start a controller of this version once`, { cause: error })
    throw faultOf(error, name)
  }
}

const UNDEFINED_TABLE = '42P01'
