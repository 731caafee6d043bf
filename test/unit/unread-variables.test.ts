import { expect, it } from 'vitest'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { unreadVariables } from '../../services/settings/settings.ts'

it('An unused variable is reported with the similar name, and without its value', () => {
  expect(
    unreadVariables({
      CONTROLLER_NATS_PASWORD: 'a secret',
      CONTROLLER_HTP_PORT: '5',
      CONTROLLER_ZZ: '1',
      PATH: '/bin',
    }),
  ).toEqual([
    'CONTROLLER_HTP_PORT is set but not used; did you mean CONTROLLER_HTTP_PORT?',
    'CONTROLLER_NATS_PASWORD is set but not used; did you mean CONTROLLER_NATS_PASSWORD?',
    'CONTROLLER_ZZ is set but not used',
  ])
})

it('A used variable, and a variable of a Kubernetes service, is not reported', () => {
  const ours = Object.fromEntries(Object.values(ENVIRONMENT).map(({ name }) => [name, 'x']))
  const ofServices = [
    'CONTROLLER_SERVICE_HOST',
    'CONTROLLER_SERVICE_PORT',
    'CONTROLLER_SERVICE_PORT_HTTP',
    'CONTROLLER_PORT',
    'CONTROLLER_PORT_30080_TCP',
    'CONTROLLER_PORT_30080_TCP_ADDR',
    'CONTROLLER_NATS_SERVICE_HOST',
    'CONTROLLER_NATS_PORT_4222_TCP_PROTO',
  ]
  expect(
    unreadVariables({ ...ours, ...Object.fromEntries(ofServices.map((name) => [name, 'tcp://10.0.0.1:1'])) }),
  ).toEqual([])
})
