import { describe, expect, test } from 'vitest'
import { headersForClient, headersForTask } from '../../services/gateway/gateway-headers.ts'
import { hostNameIn, hostOf, whyNotOwn } from '../../services/gateway/host-names.ts'

const raw = (...fields: readonly (readonly [string, string])[]): string[] => fields.flat()

describe('a gateway', () => {
  test.each([
    ...[
      'Authorization',
      'authorization',
      'Cookie',
      'X-Forwarded-For',
      'X-Forwarded-Host',
      'X_Forwarded_Proto',
    ],
    ...['Forwarded', 'X-Real-IP', 'Proxy-Authorization', 'Connection', 'Upgrade', 'TE', 'HTTP2-Settings'],
  ])('never sends %s to a task', (name) => {
    expect(headersForTask(raw([name, 'x'], ['Accept', 'y']))).toEqual(['Accept', 'y'])
  })

  test('sends everything else as it arrived, except what the connection names', () => {
    const given = raw(
      ['Host', 'a'],
      ['X-Own', '1'],
      ['X-Own', '2'],
      ['Connection', 'close, X-Gone'],
      ['x-gone', '3'],
    )
    expect(headersForTask(given)).toEqual(raw(['Host', 'a'], ['X-Own', '1'], ['X-Own', '2']))
    expect(headersForTask(raw(['Connection', 'content-length, host'], ['Content-Length', '3']))).toEqual([
      ...['Content-Length', '3'],
    ])
  })

  test('sends a body of unknown length in chunks, whatever the method', () => {
    expect(headersForTask(raw(['Transfer-Encoding', 'chunked'], ['A', 'b']))).toEqual([
      ...['A', 'b', 'Transfer-Encoding', 'chunked'],
    ])
  })

  test.each([
    ...['Set-Cookie', 'Set_Cookie', 'Clear-Site-Data', 'Service-Worker-Allowed', 'Alt-Svc', 'Report-To'],
    ...['Strict-Transport-Security', 'Transfer-Encoding', 'Keep-Alive', 'Headroom-Refusal'],
  ])('never passes %s of a task to a client', (name) => {
    expect(headersForClient(raw([name, 'x'], ['ETag', 'y'])).slice(0, 2)).toEqual(['ETag', 'y'])
    expect(
      headersForClient(raw([name, 'x']))
        .join()
        .toLowerCase(),
    ).not.toContain(name.toLowerCase())
  })

  test('gives every page of a task an origin of its own, whatever the task says', () => {
    const fields = headersForClient(raw(['Content-Security-Policy', 'default-src *']))
    expect(fields).toEqual([
      ...['Content-Security-Policy', 'default-src *'],
      ...['Content-Security-Policy', 'sandbox allow-scripts allow-forms'],
    ])
  })
})

describe('the host name of a gateway', () => {
  test.each([
    ['models.example.org', 'http://models.example.org:30080', [], 'models.example.org'],
    [
      'models.example.org',
      'http://10.0.0.1:30080',
      ['headroom.example.org', 'Models.Example.org.'],
      'Models',
    ],
    ['models.example.org', 'http://10.0.0.1:30080', ['*.example.org'], '*.example.org'],
    ['localhost', 'http://10.0.0.1:30080', [], 'localhost'],
    ['x.localhost', 'http://10.0.0.1:30080', [], 'x.localhost'],
  ])('%s is refused with the controller at %s (%j)', (name, url, hosts, part) => {
    expect(whyNotOwn([name], url, hosts)).toContain(part)
  })

  test('is accepted when the controller has none of the names', () => {
    expect(whyNotOwn(['models.example.org'], 'http://headroom.example.org', ['*'])).toBeNull()
    expect(whyNotOwn(['example.org'], 'unix:///run/headroom.sock', ['*.example.org'])).toBeNull()
  })

  test('is a name, and no address', () => {
    expect(hostNameIn('Models.Example.org.')).toBe('models.example.org')
    for (const text of ['10.0.0.1', '::1', 'a_b', '-a', 'a..b', '', 'a:80', '*.a'])
      expect(hostNameIn(text)).toBeNull()
  })

  test('is read from the Host header without its port', () => {
    expect(hostOf('Models.example.org.:443')).toBe('models.example.org')
    expect(hostOf('[::1]:80')).toBe('[::1]')
    for (const header of [undefined, '', 'a/b', 'user@a', 'a, b']) expect(hostOf(header)).toBeNull()
  })
})
