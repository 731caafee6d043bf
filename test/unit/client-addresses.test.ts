/** A client with the addresses of several controllers of one cluster. */
import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { askedApi, askedServer, deadAddress } from '../support/asked.ts'

const NO_LEADER = JSON.stringify({ code: 'no_leader', detail: 'No controller is the leader.' })
const noLeader: RequestListener = (_request, response) => {
  response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': '0' })
  response.end(NO_LEADER)
}

describe('a client with several addresses', () => {
  test('submits through the next address when the first does not listen', async () => {
    const api = await askedApi()
    const client = createClient({ url: `${await deadAddress()}, ${api.url}/`, token: null, attempts: 1 })
    expect(await client.tasks.submit({ name: 'one', vram_mib: 1 })).toMatchObject({ name: 'one' })
    expect((await client.tasks.list()).items).toHaveLength(1)
  })

  test('reads from the next address when no controller leads at the first', async () => {
    const api = await askedApi()
    let asked = 0
    const first = await askedServer((request, response) => {
      asked += 1
      noLeader(request, response)
    })
    const client = createClient({ url: `${first},${api.url}`, token: null })
    expect((await client.tasks.list()).items).toEqual([])
    expect((await client.tasks.list()).items).toEqual([])
    expect(asked).toBe(1)
  })

  test('never repeats a request that may have been carried out', async () => {
    const api = await askedApi()
    const first = await askedServer((request) => request.socket.destroy())
    const client = createClient({ url: `${first},${api.url}`, token: null })
    await expect(client.groups.create({ id: 'g' })).rejects.toThrow(/the connection broke/)
    expect(await client.groups.list()).toEqual([])
  })

  test('names the last address when none listens', async () => {
    const [first, last] = [await deadAddress(), await deadAddress()]
    const client = createClient({ url: `${first},${last}`, token: null, attempts: 1 })
    await expect(client.version()).rejects.toThrow(
      `cannot reach the controller at ${last}: connection refused`,
    )
  })

  test.each(['http://a,', 'http://a,b', Array.from({ length: 9 }, () => 'http://a').join()])(
    'refuses the addresses %s',
    (url) => {
      expect(() => createClient({ url, token: null })).toThrow(TypeError)
    },
  )
})
