/** Mutants: each removes a part of the fence or of the lease between several controllers (R9). */
import { edit, type Mutant } from './mutant.ts'

const LEASE = 'controller/adapters/memory-leadership.ts'
const CONTRACT = { test: 'test/contract/leadership.test.ts' }

export const LEADERSHIP_MUTANTS: readonly Mutant[] = [
  {
    name: 'r9-store-takes-an-old-term',
    rule: 'R9',
    says: 'the store that two controllers share accepts commits of the one that was replaced',
    edits: [
      edit(
        'simulator/world/process-store.ts',
        'storeOf',
        'if (disk.owner !== process)',
        'if (disk.owner === null)',
      ),
      edit(
        'controller/adapters/memory-store.ts',
        'commit',
        'if (batch.marks.epoch < held.marks.epoch)',
        'if (false as boolean)',
      ),
    ],
    likes: ['two_controllers'],
  },
  {
    name: 'r9-replaced-leader-beats',
    rule: 'R9',
    says: 'the beat of a leader that was replaced is accepted',
    edits: [
      edit(
        LEASE,
        'InMemory.#beat',
        "if (!this.#leads()) return this.#end({ reason: 'replaced', detail: " +
          '`epoch ${this.#lease.epoch} leads` })',
        '',
      ),
    ],
    likes: ['two_controllers'],
    directed: CONTRACT,
  },
  {
    name: 'r9-resigned-leader-keeps-its-lease',
    rule: 'R9',
    says: 'a leader that resigns still holds the lease',
    edits: [
      edit(
        LEASE,
        'InMemory.resign',
        'if (this.#leads()) Object.assign(this.#lease, { holder: null, heir: to, isResigned: true })',
        '',
      ),
    ],
    likes: ['two_controllers'],
    directed: CONTRACT,
  },
  {
    name: 'r9-silent-leader-is-kept',
    rule: 'R9',
    says: 'a silent leader is not deposed',
    edits: [
      edit(
        LEASE,
        'InMemory.#look',
        "if (silentMs >= leaseMs && holder !== null) return this.#take('silent')",
        '',
      ),
    ],
    likes: ['two_controllers'],
    directed: CONTRACT,
  },
]
