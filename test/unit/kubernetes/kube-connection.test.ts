import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { inClusterConnection, kubeconfigConnection } from '../../../operator/adapters/kube-connection.ts'
import { warningsOf } from '../../../operator/adapters/warning-header.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-kubeconfig-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function kubeconfig(user: object, cluster: object = { server: 'https://10.1.2.3:6443' }): string {
  const file = join(folder, 'config')
  const config = {
    'current-context': 'work',
    contexts: [
      { name: 'work', context: { cluster: 'c', user: 'u' } },
      { name: 'broken', context: { cluster: 'absent', user: 'u' } },
    ],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
  }
  writeFileSync(file, stringify(config))
  return file
}

describe('A kubeconfig', () => {
  it('With a token gives the server and the token', () => {
    const connection = kubeconfigConnection(kubeconfig({ token: 'secret' }))
    expect(connection).toMatchObject({ server: 'https://10.1.2.3:6443', ca: undefined })
    expect(connection.token()).toBe('secret')
  })

  it('With a token file gives the token as it is at each request', () => {
    writeFileSync(join(folder, 'token'), 'first\n')
    const connection = kubeconfigConnection(kubeconfig({ tokenFile: 'token' }))
    expect(connection.token()).toBe('first')
    writeFileSync(join(folder, 'token'), 'second\n')
    expect(connection.token()).toBe('second')
  })

  it('With certificates gives them from data and from files next to it', () => {
    writeFileSync(join(folder, 'client.key'), 'KEY')
    const user = {
      'client-certificate-data': Buffer.from('CERT').toString('base64'),
      'client-key': 'client.key',
    }
    writeFileSync(join(folder, 'ca.pem'), 'CA')
    const file = kubeconfig(user, { server: 'https://k.example', 'certificate-authority': 'ca.pem' })
    expect(kubeconfigConnection(file)).toMatchObject({
      ca: 'CA',
      clientCertificate: { cert: 'CERT', key: 'KEY' },
    })
  })

  it.each([
    ['exec', { exec: { command: 'aws' } }, {}],
    ['username', { username: 'me' }, {}],
    ['insecure-skip-tls-verify', {}, { 'insecure-skip-tls-verify': true }],
    ['https', {}, { server: 'http://10.1.2.3' }],
  ])('With %s is refused, and the message names it', (name, user, cluster) => {
    const file = kubeconfig(user, { server: 'https://10.1.2.3:6443', ...cluster })
    expect(() => kubeconfigConnection(file)).toThrow(name)
  })

  it('Without the context, its cluster or the file is refused, and the message names it', () => {
    const file = kubeconfig({})
    expect(() => kubeconfigConnection(file, 'other')).toThrow('context other')
    expect(() => kubeconfigConnection(file, 'broken')).toThrow('cluster absent')
    expect(() => kubeconfigConnection(join(folder, 'none'))).toThrow('none cannot be read')
  })
})

it('A pod finds the API server in its variables, and its token as the kubelet renews it', () => {
  expect(inClusterConnection({}, folder)).toBeNull()
  writeFileSync(join(folder, 'ca.crt'), 'CA')
  writeFileSync(join(folder, 'token'), 'one')
  const connection = inClusterConnection({ KUBERNETES_SERVICE_HOST: 'fd00::1' }, folder)
  expect(connection).toMatchObject({ server: 'https://[fd00::1]:443', ca: 'CA' })
  writeFileSync(join(folder, 'token'), 'two')
  expect(connection?.token()).toBe('two')
})

it('Warnings of the API server are read from its headers', () => {
  expect(warningsOf(undefined)).toEqual([])
  expect(warningsOf('299 - "a, \\"b\\"", 299 - "c"')).toEqual(['a, "b"', 'c'])
})
