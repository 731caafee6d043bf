import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HelperFault } from '../../gpu-server/devices/nvidia/helper-messages.ts'
import { parseSmi, smiSnapshot } from '../../gpu-server/devices/nvidia/smi.ts'

const UUID = 'GPU-5ee0d83f-ebcd-ac27-6b3e-bec2a19724e6'
const GPU = `0, ${UUID}, 81559, 551, 80000, 37, Disabled, 570.86.15, NVIDIA H100 80GB HBM3`

test('The output describes a GPU and its processes', () => {
  expect(parseSmi(`${GPU}\n`, `4711, ${UUID}, 1008\n`)).toEqual({
    driver: '570.86.15',
    gpus: [
      {
        index: 0,
        uuid: UUID,
        model: 'NVIDIA H100 80GB HBM3',
        memory: { physicalMib: 81_008, freeMib: 80_000 },
        isMig: false,
        utilizationPercent: 37,
        processes: [{ pid: 4711, usedMib: 1008 }],
        busyPids: null,
        faults: [],
      },
    ],
  })
})

test('A name with commas and quotes is complete', () => {
  const { gpus } = parseSmi(`0, ${UUID}, 100, 0, 100, 0, [N/A], 550.1, Odd "GPU", 12 GB, rev 2`, '')
  expect(gpus[0]?.model).toBe('Odd "GPU", 12 GB, rev 2')
})

test('A missing value is unknown', () => {
  const { gpus } = parseSmi(
    `0, [Unknown Error], [N/A], [N/A], [N/A], [Not Supported], [N/A], 535.54.03, [Unknown Error]\r\n`,
    `17, ${UUID}, [N/A]\n`,
  )
  expect(gpus[0]).toMatchObject({
    uuid: null,
    memory: null,
    utilizationPercent: null,
    isMig: false,
    processes: [],
  })
  expect(parseSmi(GPU, `17, ${UUID}, [Insufficient Permissions]`).gpus[0]?.processes).toEqual([
    { pid: 17, usedMib: null },
  ])
})

test('A GPU without a value for reserved memory has all its memory', () => {
  expect(parseSmi(`0, ${UUID}, 100, [N/A], 90, 0, Enabled, 510.1, X`, '').gpus[0]).toMatchObject({
    memory: { physicalMib: 100, freeMib: 90 },
    isMig: true,
  })
})

test.each([
  ['', 'nvidia-smi lists no GPU'],
  ['No devices were found', 'nvidia-smi: not a GPU: "No devices were found"'],
  [`1, ${UUID}, 1, 1, 1, 1, N, 570.1, X`, 'nvidia-smi lists GPU 1 in place 0'],
  [`${GPU}\n${GPU}`, 'nvidia-smi lists GPU 0 in place 1'],
  [`-1, ${UUID}, 1, 1, 1, 1, N, 570.1, X`, `nvidia-smi: not a GPU: "-1, ${UUID}, 1, 1, 1, 1, N, 570.1, X"`],
])('An invalid inventory is refused: %j', (rows, why) => {
  expect(() => parseSmi(rows, '')).toThrow(new HelperFault({ kind: 'driver', message: why, code: null }))
})

test.each([
  `x, ${UUID}, 1`,
  `0, ${UUID}, 1`,
  `17, ${UUID}`,
  `17, ${UUID}, 1, 2`,
  `1e3, ${UUID}, 1`,
  `99999999999, ${UUID}, 1`,
])('An invalid process row is left out and reported: %j', (row) => {
  const { gpus } = parseSmi(GPU, `${row}\n12, ${UUID}, 5`)
  expect(gpus[0]?.processes).toEqual([{ pid: 12, usedMib: 5 }])
  expect(gpus[0]?.faults).toEqual([`nvidia-smi: not a process: ${JSON.stringify(row)}`])
})

test('Any output results in an inventory of whole numbers or one clear fault', () => {
  const field = fc.oneof(
    fc.string(),
    fc.constantFrom('0', '1', '-1', '[N/A]', UUID, '570.1', 'NaN', '1e9', '0x10'),
  )
  const row = fc.array(field, { maxLength: 12 }).map((fields) => fields.join(', '))
  const rows = fc.array(row, { maxLength: 4 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(rows, rows, fc.boolean(), (gpus, processes, isSound) => {
      let snapshot
      try {
        snapshot = parseSmi(isSound ? GPU : gpus, processes)
      } catch (fault) {
        if (!(fault instanceof HelperFault)) throw fault
        return fault.message.length < 1000 && !fault.message.includes('\n')
      }
      return snapshot.gpus.every(
        ({ memory, processes: own }, place) =>
          snapshot.gpus[place]?.index === place &&
          (memory === null || (Number.isInteger(memory.physicalMib) && Number.isInteger(memory.freeMib))) &&
          (own ?? []).every(({ pid, usedMib }) => pid > 0 && (usedMib === null || Number.isInteger(usedMib))),
      )
    }),
  )
})

test('A program that fails or does not end is reported in one line', async () => {
  await expect(smiSnapshot('/bin/false', 5000)).rejects.toThrow(/^\/bin\/false failed: /)
  await expect(smiSnapshot('/usr/bin/yes', 5000)).rejects.toThrow(/^\/usr\/bin\/yes failed: /)
})
