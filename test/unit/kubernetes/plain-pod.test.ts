import { expect, it } from 'vitest'
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../operator/admission/admit-pod.ts'
import { plainPod } from '../../../operator/admission/plain-pod.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

it('A plain pod has nothing that admission has added, and everything else', () => {
  const env = [{ name: 'MODEL', value: 'void' }]
  const memory = { requests: { cpu: '1', memory: '1024Mi' }, limits: { memory: '2048Mi' } }
  const toleration = { key: 'other', operator: 'Exists' }
  const given: Pod = {
    ...aPod({ [POD_ANNOTATIONS.containers]: 'main', 'example.com/team': 'a' }),
    spec: {
      containers: [
        { name: 'main', image: 'registry.example/train:1', env, resources: memory },
        { name: 'side', image: 'registry.example/side:1' },
      ],
      initContainers: [{ name: 'load', image: 'registry.example/load:1' }],
      schedulingGates: [{ name: 'other.example/gate' }],
      tolerations: [toleration],
    },
  }
  const admitted = admitPod(given, DEFAULT_ADMISSION)
  if (!admitted.ok) expect.fail(JSON.stringify(admitted.faults))
  const { pod } = admitted
  expect(pod.spec.containers[0]?.resources?.limits?.['memory']).toBe('10240Mi')
  const stored: Pod = {
    ...pod,
    metadata: { ...pod.metadata, uid: 'a', resourceVersion: '7', creationTimestamp: 'then' },
    status: { phase: 'Pending' },
  }
  const [main, side] = given.spec.containers
  expect(plainPod(stored)).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name: 'train', namespace: 'default', labels: {} },
      annotations: { 'example.com/team': 'a' },
    },
    spec: {
      ...given.spec,
      containers: [{ ...main, resources: memory }, side],
    },
  })
})
