/** Answers carry the number of the last durable event, and no client is shown an older state than that. */
import { describe, expect, test } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { askedApi } from '../support/asked.ts'

async function apiAt(seq: number) {
  const state = { seq }
  return { ...(await askedApi({ eventSeq: () => state.seq })), state }
}

const read = (url: string, min?: string) =>
  fetch(`${url}/api/v1/tasks`, min === undefined ? {} : { headers: { 'headroom-min-event-seq': min } })

describe('a controller', () => {
  test('names the last durable event in answers and in refusals', async () => {
    const { url, state } = await apiAt(7)
    expect((await read(url)).headers.get('headroom-event-seq')).toBe('7')
    state.seq = 8
    const refused = await fetch(`${url}/api/v1/tasks/none`)
    expect([refused.status, refused.headers.get('headroom-event-seq')]).toEqual([404, '8'])
  })

  test.each(['0', '6', '7'])(
    'answers a request for the state of event %s once it has event 7',
    async (min) => {
      expect((await read((await apiAt(7)).url, min)).status).toBe(200)
    },
  )

  test('refuses a read, and a change, for a state that it has not reached, and changes nothing', async () => {
    const { url } = await apiAt(7)
    const answer = await read(url, '8')
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer.json()).toMatchObject({ code: 'state_behind' })
    const change = await fetch(`${url}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'headroom-min-event-seq': '8' },
      body: JSON.stringify({ name: 't', vram_mib: 1 }),
    })
    expect(change.status).toBe(503)
    expect(await (await read(url)).json()).toMatchObject({ items: [] })
  })

  test.each(['', '-1', '1.5', '0x1', '1, 2', '9'.repeat(16)])(
    'refuses the number of an event "%s"',
    async (min) => {
      const answer = await read((await apiAt(7)).url, min)
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
    },
  )
})

describe('a client with the addresses of two controllers', () => {
  test('is answered from a state that has its write, whichever controller it asks', async () => {
    const [ahead, behind] = [await apiAt(9), await apiAt(3)]
    const client = createClient({ url: `${ahead.url},${behind.url}`, token: null })
    await client.tasks.submit({ name: 'one', vram_mib: 1 })
    // The address that answered dies; the other controller has not heard of the task yet.
    await ahead.close()
    setTimeout(() => (behind.state.seq = 9), 300)
    await client.tasks.list()
    expect(behind.state.seq).toBe(9)
  })

  test('says once that the store went back, and reads what is there afterwards', async () => {
    const api = await apiAt(9)
    const client = createClient({ url: api.url, token: null, attempts: 1 })
    await client.tasks.list()
    api.state.seq = 2
    await expect(client.tasks.list()).rejects.toMatchObject({ code: 'state_behind', status: 503 })
    expect((await client.tasks.list()).items).toEqual([])
  })
})
