/** Which controller leads, and whether a standby is available. */
import { expect, test } from 'vitest'
import { createControllers } from '../../services/controller/controllers.ts'
import { controllersWords } from '../../ui/format/controllers.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

test('A controller without a standby names no controllers; one that lost its standby says so', () => {
  let seen: { readonly standbys: number; readonly others: number } | null = null
  const controllers = createControllers('head-1', null, () => seen)
  expect(controllers()).toBe(null)
  seen = { standbys: 0, others: 0 }
  expect(controllers()).toBe(null)
  seen = { standbys: 1, others: 1 }
  expect(controllers()).toEqual({ leader: 'head-1', standbys: 1 })
  seen = { standbys: 0, others: 0 }
  expect(controllers()).toEqual({ leader: 'head-1', standbys: 0 })
  seen = null
  expect(controllers()).toEqual({ leader: 'head-1', standbys: null })
})

test('A controller that took over says at once that no standby is available', () => {
  const seen = { standbys: 0, others: 0 }
  expect(createControllers('head-2', 'head-1', () => seen)()).toEqual({ leader: 'head-2', standbys: 0 })
  expect(createControllers('head-2', 'head-2', () => seen)()).toBe(null)
  const missing = { standbys: 0, others: 1 }
  expect(createControllers('head-2', null, () => missing)()).toEqual({ leader: 'head-2', standbys: 0 })
})

test('GET /summary has the leader and the number of standbys', async () => {
  const world = new FakeController()
  const alone = await apiClient(world)
  expect((await alone.send('GET', '/summary')).body.controllers).toBe(null)
  await alone.app.close()
  const led = await apiClient(world, { controllers: () => ({ leader: 'head-1', standbys: 2 }) })
  expect((await led.send('GET', '/summary')).body.controllers).toEqual({ leader: 'head-1', standbys: 2 })
  await led.app.close()
})

test.each([
  [0, 'head-1 leads, no standby', 'No standby is available'],
  [1, 'head-1 leads, 1 standby', '1 standby can take over'],
  [2, 'head-1 leads, 2 standbys', '2 standbys can take over'],
  [null, 'head-1 leads', 'number of standbys is unknown'],
])('The badge of %s standbys reads %s', (standbys, text, meaning) => {
  const words = controllersWords({ leader: 'head-1', standbys })
  expect(words.text).toBe(text)
  expect(words.meaning).toContain(meaning)
})
