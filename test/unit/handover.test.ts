/** The leader and the standbys, and the handover that an operator requests by REST or by the command. */
import { describe, expect, test } from 'vitest'
import {
  handoverRefusal,
  notReady,
  type Handover,
  type LeaderView,
  type Standby,
} from '../../controller/ports/handover.ts'
import { createHandover } from '../../services/controller/controllers.ts'
import { askedApi } from '../support/asked.ts'
import { headroom } from '../support/headroom-command.ts'

const LEADER = { name: 'head-1', url: 'http://head-1:30080' }
const READY: Standby = {
  ...{ name: 'head-2', url: 'http://head-2:30080', version: '1.2.3' },
  ...{ mayLead: true, ageMs: 300, lagMs: 40 },
}

const viewWith = (...standbys: readonly Standby[]): LeaderView => ({ leader: LEADER, epoch: 7, standbys })

/** The end of the term is what the test makes of it. */
function handoverOf(view: LeaderView, onResign: (to: string | null) => void = () => {}) {
  const state = { view, asked: [] as (string | null)[] }
  const handover: Handover = {
    view: () => Promise.resolve(state.view),
    resign: (to) => {
      state.asked.push(to)
      onResign(to)
    },
  }
  return { handover, state }
}

describe('a handover', () => {
  test.each([
    ['a standby that never leads', { mayLead: false }, 'never_leads'],
    ['a standby that does not follow the leader', { lagMs: null }, 'not_following'],
    ['a standby that is 5,001 ms behind', { lagMs: 5_001 }, 'too_far_behind'],
    ['a standby that is 5,000 ms behind', { lagMs: 5_000 }, null],
  ])('to %s is refused or accepted with this reason', (_which, change, reason) => {
    const standby = { ...READY, ...change }
    expect(notReady(standby)).toBe(reason)
    expect(handoverRefusal(viewWith(standby), 'head-2') === null).toBe(reason === null)
  })

  test('is accepted to a standby that is ready, and to any if one of them is', () => {
    const behind = { ...READY, name: 'head-3', lagMs: 60_000 }
    expect(handoverRefusal(viewWith(READY, behind), 'head-2')).toBe(null)
    expect(handoverRefusal(viewWith(READY, behind), null)).toBe(null)
    expect(handoverRefusal(viewWith(READY, behind), 'head-3')).toBe(
      'No standby can take over: head-3 is 60000 ms behind the leader (maximum 5000 ms).',
    )
  })

  test.each([
    ['no leader', { leader: null, epoch: 7, standbys: [READY] }, null, 'No controller is the leader'],
    ['the leader itself', viewWith(READY), 'head-1', 'head-1 leads already.'],
    ['no standby', viewWith(), null, 'No standby is available.'],
    ['an unknown name', viewWith(READY), 'x', 'x is not a standby. Standbys: head-2.'],
    ['no ready standby', viewWith({ ...READY, lagMs: null }), null, 'head-2 has not loaded the state'],
  ] as const)('is refused, and says why: %s', (_case, view, to, text) => {
    expect(handoverRefusal(view, to)).toContain(text)
  })

  test('of a controller on SQLite is refused: it leads alone', async () => {
    const alone = createHandover({}, 'only', { status: { epoch: 3 } }, () => {})
    expect(await alone.view()).toEqual({ leader: { name: 'only', url: '' }, epoch: 3, standbys: [] })
    expect(handoverRefusal(await alone.view(), null)).toContain('No standby is available.')
  })
})

describe('the REST API', () => {
  const post = (url: string, body?: object) =>
    fetch(`${url}/api/v1/leader/resign`, {
      method: 'POST',
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })

  test('GET /leader has the leader, its epoch, and how far each standby is behind', async () => {
    const { url } = await askedApi({
      handover: handoverOf(viewWith(READY, { ...READY, name: 'head-3', mayLead: false })).handover,
    })
    const answer = await fetch(`${url}/api/v1/leader`)
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        leader: LEADER,
        epoch: 7,
        standbys: [
          {
            ...{ name: 'head-2', url: 'http://head-2:30080', version: '1.2.3', may_lead: true },
            ...{ seen_ms_ago: 300, lag_ms: 40, not_ready: null },
          },
          expect.objectContaining({ name: 'head-3', may_lead: false, not_ready: 'never_leads' }),
        ],
      },
    ])
  })

  test('POST /leader/resign answers before the term ends, and passes the name on', async () => {
    const { handover, state } = handoverOf(viewWith(READY))
    const { url } = await askedApi({ handover })
    const answer = await post(url, { to: 'head-2' })
    expect([answer.status, await answer.json()]).toMatchObject([202, { epoch: 7, leader: LEADER }])
    await expect.poll(() => state.asked).toEqual(['head-2'])
    const second = await post(url)
    expect([second.status, await second.json()]).toMatchObject([
      409,
      { code: 'conflict', detail: 'A handover is already in progress.' },
    ])
    expect(state.asked).toEqual(['head-2'])
  })

  test('POST /leader/resign without a body hands over to any standby', async () => {
    const { handover, state } = handoverOf(viewWith(READY))
    expect((await post((await askedApi({ handover })).url)).status).toBe(202)
    await expect.poll(() => state.asked).toEqual([null])
  })

  test('POST /leader/resign is refused without a ready standby, and the term continues', async () => {
    const { handover, state } = handoverOf(viewWith({ ...READY, lagMs: 9_000 }))
    const { url } = await askedApi({ handover })
    const answer = await post(url, { to: 'head-2' })
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { detail: 'No standby can take over: head-2 is 9000 ms behind the leader (maximum 5000 ms).' },
    ])
    state.view = viewWith(READY)
    expect((await post(url, { to: '' })).status).toBe(400)
    expect((await post(url, { to: 'head-2' })).status).toBe(202)
    await expect.poll(() => state.asked).toEqual(['head-2'])
  })

  test('a simulated cluster has no leader to show', async () => {
    const { url } = await askedApi()
    expect((await fetch(`${url}/api/v1/leader`)).status).toBe(409)
    expect((await post(url)).status).toBe(409)
  })
})

describe('headroom leader', () => {
  const on = (url: string) => ({ env: { HEADROOM_URL: url, CONTROLLER_STORE_URL: '' } })

  test('shows the controllers through the one that answers', async () => {
    const { url } = await askedApi({ handover: handoverOf(viewWith({ ...READY, lagMs: null })).handover })
    const { stdout, code } = await headroom(['leader', '-o', 'json'], on(url))
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject([
      { name: 'head-1', role: 'leader', epoch: 7 },
      { name: 'head-2', role: 'standby', lag_ms: null, not_ready: 'not_following' },
    ])
  })

  test('resign waits until the named standby leads', async () => {
    const next = { leader: { name: 'head-2', url: READY.url }, epoch: 8, standbys: [] }
    const { handover, state } = handoverOf(viewWith(READY), () => (state.view = next))
    const { url } = await askedApi({ handover })
    const { code, stdout } = await headroom(['leader', 'resign', '--to', 'head-2', '--server', url])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^head-2 became the leader with epoch 8, \d+ ms after/),
    ])
    expect(state.asked).toEqual(['head-2'])
  })

  test('resign fails when the same controller leads again', async () => {
    const { handover, state } = handoverOf(viewWith(READY), () => (state.view = { ...state.view, epoch: 8 }))
    const { url } = await askedApi({ handover })
    const { code, stderr } = await headroom(['leader', 'resign', '--to', 'head-2', '--server', url])
    expect([code, stderr]).toEqual([
      1,
      'headroom: head-2 did not take over: head-1 is the leader again, with epoch 8. Run `headroom ' +
        'leader` for details.\n',
    ])
  })

  test('resign passes on why it is refused', async () => {
    const { url } = await askedApi({ handover: handoverOf(viewWith()).handover })
    const { code, stderr } = await headroom(['leader', 'resign'], on(url))
    expect(code).toBe(5)
    expect(stderr).toContain('No standby is available. Start another controller')
  })
})
