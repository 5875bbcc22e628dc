set pagination off
set width 0
break opd_add
break opdi_mul_backward
ignore 1 1
run
echo from opd_add\n
set $left = 3000
while $left > 0 && ($pc < (long)opdi_f32_at_add || $pc > (long)opdi_f32_at_add + 4)
    step
    set $left = $left - 1
end
echo in the loop\n
step
step
step
step
step
continue
echo in the formula\n
next
next
next
info locals
