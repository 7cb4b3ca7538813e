/**
 * One node of the bench of the stores, in a process of its own: opens a store, and takes deliveries through it
 * when it is asked to.
 */
import type { Store } from '../../src/store/store.ts';
import { onAsk } from '../probe.ts';
import { drain, handOff, leave, type Share } from './lives.ts';
import { type Place, storeAt } from './place.ts';

let store: Store;

onAsk('open', async (place: Place) => {
  store = storeAt(place);
  await store.open();
});
onAsk('handOff', (share: Share) => handOff(store, share));
onAsk('leave', (share: Share) => leave(store, share));
onAsk('drain', (share: Share) => drain(store, share));
