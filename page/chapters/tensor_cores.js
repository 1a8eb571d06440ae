// Chapter: tensor cores form products many times quicker, and are as much harder to feed.
import {formatCount} from '../parts/format.js';
import {findCrossover, listUnits} from '../facts/units.js';
import {drawRoofline} from '../pictures/roofline_picture.js';

const SIDES = [8, 16, 32, 64, 128, 192, 256, 384, 512, 600, 768, 1024];
const LOOKS = {fma: {shape: 'circle', series: 1}, sliced: {shape: 'triangle', series: 5},
               tf32: {shape: 'square', series: 4}, mma: {shape: 'diamond', series: 2}};

export default {
    title: 'Tensor cores: a higher roof',
    idea: ['A T x T tile has T / 4 FLOP for each byte in FP32 and T / 2 in BF16. Memory bounds ' +
           'it until it reaches the ridge of its unit. Small tiles keep FP32 units busy; tensor ' +
           'cores need tiles of hundreds, held in registers and shared through caches.'],
    state: {side16: 128},
    closer: {view: 'roofline', label: 'See the kernels on the roofline'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(
            app.slider({key: 'side16', label: 'tile side T:', values: () => SIDES}),
            app.choice({key: 'chip', label: 'chip', options: () => app.model.chips.map(
                chip => ({value: chip.name, label: chip.title}))}));
        return () => {
            const chip = app.findChip(app.state.chip);
            const units = listUnits(app, chip);
            const side = SIDES.includes(app.state.side16) ? app.state.side16 : SIDES[0];
            const points = units.map(unit => {
                const intensity = side / unit.bytes;
                const rate = Math.min(unit.peak, intensity * chip.memory_bytes_per_s);
                return {intensity, rate, look: {...LOOKS[unit.id], size: 7}, isFirst: true,
                        title: unit.title, name: unit.id === 'fma' ? `T = ${side}` : ''};
            });
            shown.show(drawRoofline(app.svg, {label: `Roofs of ${chip.title}`, height: 520, low: 1,
                width: app.measureWidth(picture, 960), points,
                roofs: units.map(unit => (
                    {...unit, figures: `ridge ${formatCount(unit.ridge)}`}))}),
                ['unit', 'GFLOP/s', 'ridge', 'crossed by T =', `GFLOP/s bound at T = ${side}`],
                units.map((unit, i) => [unit.title, unit.peak / 1e9, unit.ridge,
                                        findCrossover(unit), points[i].rate / 1e9]),
                `What bounds a tile of ${side} x ${side} on ${chip.title}, if every byte came ` +
                'from DRAM');
            showFacts(units.map(unit => [`${unit.title} crossed by T =`, findCrossover(unit)]));
        };
    },
};
