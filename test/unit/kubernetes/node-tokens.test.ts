/** What the operator believes of the tokens of agents. */
import { expect, it } from 'vitest'
import { NodeTokens } from '../../../operator/adapters/node-tokens.ts'

const ACCOUNT = 'system:serviceaccount:headroom:headroom-agent'
const TOKEN = `x.${Buffer.from(JSON.stringify({ exp: 3_600 })).toString('base64url')}.x`
const GOOD = {
  authenticated: true,
  audiences: ['headroom'],
  user: { username: ACCOUNT, extra: { 'authentication.kubernetes.io/node-name': ['a'] } },
}

function world(status: object) {
  const state = { now: 0, reviews: 0, isAway: false, status }
  const create = () => {
    state.reviews += 1
    return state.isAway
      ? Promise.reject(new Error('away'))
      : Promise.resolve({ metadata: {}, status: state.status })
  }
  return { state, tokens: new NodeTokens({ api: { create }, now: () => state.now, account: ACCOUNT }) }
}

it.each([
  ['is not valid', { ...GOOD, authenticated: false }],
  ['is for another audience', { ...GOOD, audiences: ['https://kubernetes.default.svc'] }],
  ['is of another account', { ...GOOD, user: { ...GOOD.user, username: 'system:serviceaccount:x:y' } }],
  ['is bound to no node', { ...GOOD, user: { username: ACCOUNT } }],
])('A token that %s names no node', async (_why, status) => {
  expect(await world(status).tokens.nodeOf(TOKEN)).toBeNull()
})

it('A token is reviewed once a minute, and holds while the API server is away until it expires', async () => {
  const { state, tokens } = world(GOOD)
  expect([await tokens.nodeOf(TOKEN), await tokens.nodeOf(TOKEN), state.reviews]).toEqual(['a', 'a', 1])
  state.now = 61_000
  state.isAway = true
  expect([await tokens.nodeOf(TOKEN), state.reviews]).toEqual(['a', 2])
  state.now = 3_600_001
  await expect(tokens.nodeOf(TOKEN)).rejects.toThrow('away')
  state.isAway = false
  state.status = { authenticated: false }
  expect(await tokens.nodeOf(TOKEN)).toBeNull()
})

it('Texts that can be no token are not sent to the API server', async () => {
  const { state, tokens } = world(GOOD)
  expect([await tokens.nodeOf(''), await tokens.nodeOf('x'.repeat(9_000)), state.reviews]).toEqual([
    null,
    null,
    0,
  ])
})
