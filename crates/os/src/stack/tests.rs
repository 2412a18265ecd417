extern crate std;
use super::*;
use core::hint::black_box;

#[inline(never)]
fn inner(depth: u32) -> Stack {
    if depth == 0 {
        return black_box(Stack::here());
    }
    let stack = inner(black_box(depth - 1));
    black_box(stack)
}

#[test]
fn a_stack_has_each_call_once_and_goes_on_to_those_outside() {
    let stacks = [1, 2, 5].map(inner);
    let own = inner as fn(u32) -> Stack as usize;
    let in_inner = |stack: &Stack| stack.addresses().iter().filter(|&&at| (own..own + 256).contains(&at)).count();
    assert_eq!(stacks.each_ref().map(in_inner), [2, 3, 6]);
    assert!(stacks.iter().all(|stack| stack.addresses().len() >= 8), "{stacks:?}");
    assert_eq!(inner(100).addresses().len(), FRAMES_MOST, "no more than there is room for");
}

#[test]
fn the_second_stack_of_a_place_is_the_first_one() {
    let [first, second] = [(), ()].map(|()| inner(3));
    assert_eq!(first.addresses()[..4], second.addresses()[..4]);
}

#[test]
fn registers_that_point_nowhere_end_the_stack() {
    for (code, stack, frame) in
        [(0, 0, 0), (1, 8, 8), (usize::MAX, usize::MAX, usize::MAX), (1 << 47, 1 << 62, 1 << 62)]
    {
        let nowhere: Stack = Stack::at(Registers { code, stack, frame, link: 0 });
        assert_eq!(nowhere.addresses(), [code], "{stack:#x}");
    }
}

#[test]
fn code_without_information_is_left_by_its_frame_pointer() {
    let outside = a_stack_has_each_call_once_and_goes_on_to_those_outside as fn() as usize;
    let frame = [0usize, outside + 1];
    let at = frame.as_ptr().expose_provenance();
    let stack: Stack = Stack::at(Registers { code: 0x10, stack: at, frame: at, link: 0 });
    assert_eq!(stack.addresses()[..2], [0x10, outside]);
}

#[test]
fn a_stack_is_made_of_addresses() {
    let stack: Stack = Stack::of([1, 2, 3].into_iter());
    assert_eq!(stack.addresses(), [1, 2, 3]);
    assert_eq!(<Stack>::of(1..100).addresses().len(), FRAMES_MOST);
}
