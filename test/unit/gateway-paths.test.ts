import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { judgePath, NEVER_CALLED, SERVED_BELOW, SERVED_PATHS } from '../../services/gateway/engine-paths.ts'
import { endpointTargetIn } from '../../services/gateway/endpoint-target.ts'

const PROXY = readFileSync(new URL('../../gpu-server/guard/proxy-http.c', import.meta.url), 'utf8')

/** The texts of an array in the sources of the proxy. */
function listIn(name: string): readonly string[] {
  const [, body = ''] = new RegExp(`\\*const ${name}\\[\\] = \\{([^}]*)\\}`).exec(PROXY) ?? []
  return [...body.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text)
}

test('The gateway and the proxy of a task have the same lists of paths', () => {
  expect(listIn('served')).toEqual(SERVED_PATHS)
  expect(listIn('served_below')).toEqual(SERVED_BELOW)
  expect(listIn('never')).toEqual(NEVER_CALLED)
  expect(NEVER_CALLED.length).toBeGreaterThan(20)
})

describe('a path', () => {
  test.each([
    '/sleep',
    '/sleep?level=1',
    '/SLEEP',
    '/sleep/',
    '//sleep',
    '/%73leep',
    '/v1/%2fsleep',
    '/sleep;x=1',
    '/x\\wake_up',
    '/v1/load_lora_adapter',
  ])('that administers an engine is forbidden for every task: %s', (path) => {
    expect(judgePath(path, false)).toBe('forbidden')
    expect(judgePath(path, true)).not.toBe('pass')
  })

  test.each(['/v1/../sleep', '/./x', '/%2e%2e/x', '/..;/x', '/%zz', '/%ff', '/a%00b', '/a%0d%0ab'])(
    'that can be read in more than one way is refused: %s',
    (path) => {
      expect(judgePath(path, false)).toBe('malformed')
      expect(judgePath(path, true)).toBe('malformed')
    },
  )

  test.each(['/', '/index.html', '/files/a%20b', '/asleep', '/v1/models?sleep=1', '/a//b', '/100%25'])(
    'of a task that is not an engine passes: %s',
    (path) => expect(judgePath(path, false)).toBe('pass'),
  )

  test('of an engine passes when it is one for serving', () => {
    for (const path of ['/v1/chat/completions', '/health', '/metrics?x=1'])
      expect(judgePath(path, true)).toBe('pass')
    for (const path of ['/', '/healthz', '/update_weights_from_disk', '/v1'])
      expect(judgePath(path, true)).toBe('forbidden')
    for (const path of ['/v1//models', '/v1/%25', '/v1/a%20b'])
      expect(judgePath(path, true)).toBe('malformed')
  })
})

describe('the target of a request', () => {
  test('names an owner, the name of a task, and a path for it', () => {
    expect(endpointTargetIn('/alice/chat/v1/models?a=b/c')).toEqual({
      ...{ owner: 'alice', name: 'chat', path: '/v1/models?a=b/c' },
    })
    expect(endpointTargetIn('/alice/chat')).toMatchObject({ path: '/' })
    expect(endpointTargetIn('/alice/chat?q')).toMatchObject({ path: '/?q' })
    expect(endpointTargetIn('/nats%3Alab/my%20model%2F7b/x')).toMatchObject({
      ...{ owner: 'nats:lab', name: 'my model/7b' },
    })
  })

  test.each([
    ...['', '/', '/alice', '/alice/', '//chat/x', '*', 'http://10.0.0.1:30080/api/v1/tasks'],
    ...[
      '/alice/chat#x',
      '/alice/%zz/x',
      '/alice/chat/\u00e9',
      '/a b/c/',
      `/alice/chat/${'x'.repeat(20_000)}`,
    ],
  ])('names no endpoint: %s', (url) => expect(endpointTargetIn(url)).toBeNull())
})
