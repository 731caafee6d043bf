import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { brokerConfigText } from '../../cli/nats/nats-config-text.ts'
import type { BrokerUser } from '../../cli/nats/nats-config-text.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { clientIdOf, clientSubject } from '../../protocol/subjects.ts'

const OPTIONS = { listen: '0.0.0.0:4222', monitor: '0.0.0.0:8222', tls: null, jetStreamDir: null }

test('The example configuration is the output of `headroom nats config`', () => {
  const text = readFileSync(new URL('../../deploy/nats/example.conf', import.meta.url), 'utf8')
  const keys = [...text.matchAll(/nkey: (U[A-Z2-7]{55})/g)].map(([, key]) => key as string)
  const users: BrokerUser[] = [
    { name: 'controller', identity: { kind: 'controller' }, publicKey: keys[0] as string },
    {
      name: 'node-gpu-1',
      identity: { kind: 'node', nodeId: nodeIdFromName('gpu-1') },
      publicKey: keys[1] as string,
    },
    { name: 'client-lab', identity: { kind: 'client', clientId: 'lab' }, publicKey: keys[2] as string },
  ]
  expect(text).toBe(brokerConfigText(users, OPTIONS))
})

test('TLS is configured on request, with an authority only if clients must show a certificate', () => {
  const tls = { cert: '/c.pem', key: '/k.pem', ca: null }
  expect(brokerConfigText([], { ...OPTIONS, monitor: null, tls })).toContain(
    'tls {\n  cert_file: "/c.pem"\n  key_file: "/k.pem"\n}\n',
  )
  expect(brokerConfigText([], { ...OPTIONS, tls: { ...tls, ca: '/ca.pem' } })).toContain(
    '  ca_file: "/ca.pem"\n  verify: true\n}\n',
  )
})

test('A client is identified by its subject', () => {
  expect(clientIdOf(clientSubject('lab', 'submit'))).toBe('lab')
  expect(clientIdOf('gpu.v1.client..submit')).toBeNull()
  expect(clientIdOf('gpu.v1.node.lab.submit')).toBeNull()
})
